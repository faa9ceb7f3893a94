# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""TCP's congestion control of hosts that are network namespaces: cubic, Linux's own default, or reno.

Some distributions have BBR as their default, which paces by timers. A namespace cannot choose cubic if the machine
restricts it, see tcp_allowed_congestion_control.
"""

CHOOSE = """
    file=/proc/sys/net/ipv4/tcp_congestion_control
    for name in cubic reno; do
        if echo $name 2>&- >$file; then break; fi
    done
    cat $file
"""


def start(lab):
    """Start the hosts, then their daemons. Return: the name of the congestion control."""
    lab.hosts.start()
    first, *_ = [lab.hosts.run(number, "sh", "-c", CHOOSE).strip() for number in lab.daemons]
    lab.start_daemons()
    return first
