// A library that is loaded into a PostgreSQL server, and nothing else: a flush of its log takes as
// long as STELA_FLUSH_US says. The files are in memory, so there is nothing else to wait for.
#include <sys/prctl.h>
#include <time.h>

#include <cerrno>
#include <cstdlib>

namespace {

long microseconds() {
  const char* const text = std::getenv("STELA_FLUSH_US");
  // The system adds up to 50 µs to a sleep unless it is asked not to.
  prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

}  // namespace

// The log alone is flushed by this call: tables, and new files of the log, by fsync().
extern "C" int fdatasync(int) {
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  static const long length = microseconds();
  constexpr long second = 1'000'000'000;
  end.tv_nsec += length * 1000;
  end.tv_sec += end.tv_nsec / second;
  end.tv_nsec %= second;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
  return 0;
}
