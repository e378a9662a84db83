#include <stela/framework/log.hpp>

#include <stela/framework/clock.hpp>

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace stela {
namespace {

/// "2026-11-21T11:34:00Z error relay.stopped: poison: too large (worker=w1 partition=p00)\n"
std::string line_of(const LogEntry& entry) {
  std::string line = to_string(system_clock().now()).substr(0, 19) + "Z ";
  line.append(to_string(entry.level)).append(" ").append(entry.name);
  line.append(": ").append(entry.message);
  bool is_first = true;
  for (const LogEntry::Field& field : entry.fields) {
    if (entry.message.find(field.value) != std::string_view::npos) continue;
    line.append(std::exchange(is_first, false) ? " (" : " ").append(field.name);
    line.append("=").append(field.value);
  }
  if (!is_first) line += ')';
  // Text from a broker or an exception may contain control characters that a terminal obeys.
  const auto is_obeyed = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  std::replace_if(line.begin(), line.end(), is_obeyed, ' ');
  return line += '\n';
}

class StderrLog final : public LogSink {
 public:
  void write(const LogEntry& entry) noexcept override try {
    if (entry.level < LogLevel::info) return;
    const std::string line = line_of(entry);
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  } catch (const std::exception&) {
  }
};

class NoLog final : public LogSink {
 public:
  void write(const LogEntry&) noexcept override {}
};

class NoMetrics final : public MetricSink {
 public:
  void count(std::string_view, std::int64_t, Labels) noexcept override {}
  void gauge(std::string_view, double, Labels) noexcept override {}
  void observe(std::string_view, double, Labels) noexcept override {}
};

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "unknown";
}

LogSink& log_to_stderr() noexcept {
  static StderrLog log;
  return log;
}

LogSink& no_log() noexcept {
  static NoLog log;
  return log;
}

MetricSink& no_metrics() noexcept {
  static NoMetrics metrics;
  return metrics;
}

}  // namespace stela
