/* Preloaded into a rank by soak.py: a disk that is slow, a wall clock that jumps, connections that
   break. SOAK_FSYNC_MS delays each fsync; SOAK_CLOCK_S is added to the wall clock from the tenth
   reading on; SIGUSR1 shuts all TCP sockets of the process down. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static long number_of(const char* name) {
  const char* text = getenv(name);
  return text ? atol(text) : 0;
}

int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  usleep((useconds_t)number_of("SOAK_FSYNC_MS") * 1000);
  return real(fd);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  static atomic_long readings;
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  if (clock == CLOCK_REALTIME && atomic_fetch_add(&readings, 1) >= 10)
    now->tv_sec += number_of("SOAK_CLOCK_S");
  return result;
}

static void break_connections(int signal) {
  (void)signal;
  for (int fd = 3; fd < 256; ++fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    if (getsockname(fd, (struct sockaddr*)&address, &size) != 0) continue;
    if (address.ss_family == AF_INET || address.ss_family == AF_INET6) shutdown(fd, SHUT_RDWR);
  }
}

__attribute__((constructor)) static void listen_for_signal(void) { signal(SIGUSR1, break_connections); }
