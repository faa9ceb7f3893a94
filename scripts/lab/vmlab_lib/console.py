# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The serial console of a guest's kernel, and the lines on it that fail a run."""

import re

# The beginning of a kernel message. Complaints of a user's program
# ("traps: foo[12] general protection fault") begin with something else.
_COMPLAINT = re.compile(r"""
    (?: (?:watchdog|rcu|kmemleak|workqueue|CPU\d+|Memory\ failure):\ )?
    (?: WARNING:\ | BUG:\ | BUG\ at\ | BUG\ \S+\ \(| Oops | kernel\ BUG\ at\ | Kernel\ panic
      | INFO:\ (?:task\ .*\ blocked|trying\ to\ register|possible|suspicious|inconsistent|\S+\ (?:self-)?detected)
      | possible\ (?:recursive|circular|irq)\ lock
      | (?:inconsistent|suspicious)\ (?:lock|RCU)
      | general\ protection\ fault | double\ fault | divide\ error | invalid\ opcode | stack\ segment
      | (?:KASAN|KCSAN|KMSAN|UBSAN):\ | UBSAN\b
      | list_(?:add|del)\ corruption | refcount_t:\ | DEBUG_LOCKS_WARN_ON
      | unregister_netdevice:\ waiting\ for
      | DMA-API:\ .*(?:driver|device)
      | \d+\ new\ suspected\ memory\ leaks
      | Bad\ page\ | Page\ fault\ in\ | sysrq:\ Show\ Blocked )""", re.VERBOSE)
_PREFIX = re.compile(r"^(?:<\d+>)?(?:\[\s*\d+\.\d+\](?:\[[^\]]*\])?\s)?")
_BOOT_FAILURE = re.compile(r"^vmlab-fail: (.*)")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc|\r")


class Console:
    """Reads one guest's console, line by line; remembers the first complaint and its trace."""

    TRACE_LINES = 60

    def __init__(self):
        self.complaint = None
        self.boot_failure = None
        self.trace = []

    def feed(self, line):
        """Take a line. True when it belongs to a complaint (the caller shows it)."""
        line = _ANSI.sub("", line)
        message = _PREFIX.sub("", line)
        failure = _BOOT_FAILURE.match(message)
        if failure and self.boot_failure is None:
            self.boot_failure = failure.group(1)
        if self.complaint is None and _COMPLAINT.match(message):
            self.complaint = message.strip()
        if self.complaint is None or len(self.trace) >= self.TRACE_LINES:
            return False
        self.trace.append(line)
        return True

    def reason(self):
        """The complaint in one line, with the driver's name if it is in the trace."""
        ours = any("pvrdma" in line for line in self.trace)
        return self.complaint + (" (pvrdma is in its trace)" if ours else "")
