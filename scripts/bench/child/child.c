/* The child of parts idle and supervisors: it says in a FIFO that it is up, and waits.
   As a worker it asks for a message first, which does not come. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef UP
#error "compile with -DUP='\"the path of the FIFO\"'"
#endif

static const char claim[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"claim\",\"params\":{\"wait\":\"24h\"}}\n";

int main(int argc, char **argv) {
	char line[64], answer[4096];
	int worker = argc > 1 && strcmp(argv[1], "worker") == 0;
	int up = open(UP, O_WRONLY | O_CLOEXEC);
	int n = snprintf(line, sizeof line, "%d%s\n", (int)getpid(), worker ? " worker" : "");
	if (up < 0 || write(up, line, n) != n)
		return 1;
	close(up);
	if (worker && (write(3, claim, sizeof claim - 1) < 0 || read(3, answer, sizeof answer) < 0))
		return 1;
	for (;;)
		pause();
}
