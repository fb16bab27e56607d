/* The child of parts idle, supervisors, redelivery and backlog: it says in a FIFO that it is
   up, and waits. As "worker" it then asks for a message, which does not come; as "claims" it
   asks first, and is up when it has one. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef UP
#error "compile with -DUP='\"the path of the FIFO\"'"
#endif

static const char claim[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"claim\",\"params\":{\"wait\":\"24h\"}}\n";

static int ask(void) {
	char answer[65536];
	ssize_t n = sizeof claim - 1;
	if (write(3, claim, n) != n)
		return 0;
	do
		n = read(3, answer, sizeof answer);
	while (n > 0 && answer[n - 1] != '\n');
	return n > 0;
}

int main(int argc, char **argv) {
	char line[64];
	int claims = argc > 1 && strcmp(argv[1], "claims") == 0;
	int worker = argc > 1 && strcmp(argv[1], "worker") == 0;
	int up = open(UP, O_WRONLY | O_CLOEXEC);
	int n = snprintf(line, sizeof line, "%d%s\n", (int)getpid(), worker ? " worker" : "");
	if (up < 0 || (claims && !ask()) || write(up, line, n) != n)
		return 1;
	close(up);
	if (worker)
		ask();
	for (;;)
		pause();
}
