// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The terminal of pvrdmactl top. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ctl_screen.h"

/* The alternate screen, no cursor, no wrap of long lines; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"
#define CLEAR "\033[H\033[J"

static struct termios before;
static sigset_t while_waiting; /* signal mask of pvr_screen_wait(): the only place of handlers */
static volatile sig_atomic_t ended, resized;

static void on_signal(int number)
{
	if (number == SIGWINCH)
		resized = 1;
	else
		ended = 1;
}

static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };
	const struct sigaction action = { .sa_handler = on_signal };
	sigset_t caught;
	size_t i;

	sigemptyset(&caught);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaction(numbers[i], &action, NULL);
		sigaddset(&caught, numbers[i]);
	}
	sigprocmask(SIG_BLOCK, &caught, &while_waiting);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigdelset(&while_waiting, numbers[i]);
}

bool pvr_screen_is_possible(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

bool pvr_screen_open(void)
{
	struct termios now;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return false;
	catch_signals();
	now = before;
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	now.c_cc[VSUSP] = _POSIX_VDISABLE; /* a stopped process leaves the screen as it is */
	if (tcsetattr(STDIN_FILENO, TCSANOW, &now) < 0)
		return false;
	fputs(ENTER, stdout);
	return true;
}

void pvr_screen_close(void)
{
	fputs(LEAVE, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

unsigned int pvr_screen_begin(void)
{
	struct winsize size = { .ws_row = 0 };

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	fputs(CLEAR, stdout);
	return size.ws_row ? size.ws_row : 24;
}

int pvr_screen_wait(uint32_t ms)
{
	const struct timespec timeout = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int num = ppoll(&input, 1, &timeout, &while_waiting);
	unsigned char key;

	if (ended)
		return PVR_SCREEN_ENDED;
	if (resized) {
		resized = 0;
		return PVR_SCREEN_RESIZED;
	}
	if (num == 0 || (num < 0 && errno == EINTR))
		return PVR_SCREEN_TIMEOUT;
	if (num < 0 || read(STDIN_FILENO, &key, 1) != 1)
		return PVR_SCREEN_ENDED;
	return key ? key : ' ';
}
