// Sinks for logs and metrics.
#pragma once

#include <stela/framework/export.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace stela {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

STELA_FRAMEWORK_EXPORT std::string_view to_string(LogLevel level) noexcept;

/// One log entry. `name` is fixed and searchable ("snapshot.skipped"). The fields hold the details.
struct LogEntry {
  struct Field {
    std::string_view name;
    std::string value;
  };
  LogLevel level;
  std::string_view name;
  std::string_view message;
  std::span<const Field> fields = {};
};

/// Receives log entries. Must not throw.
/// Threads: called from any thread that uses a store, a relay or a runner.
class STELA_FRAMEWORK_EXPORT LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(const LogEntry& entry) noexcept = 0;
};

/// Receives measurements. Must not throw. Names are those of docs/reference/metrics.md.
/// Threads: as LogSink.
class STELA_FRAMEWORK_EXPORT MetricSink {
 public:
  struct Label {
    std::string_view name;
    std::string_view value;
  };
  using Labels = std::initializer_list<Label>;

  virtual ~MetricSink() = default;
  virtual void count(std::string_view name, std::int64_t by, Labels labels) noexcept = 0;
  virtual void gauge(std::string_view name, double value, Labels labels) noexcept = 0;
  virtual void observe(std::string_view name, double seconds, Labels labels) noexcept = 0;
};

/// Writes a line to stderr for each entry of level `info` and above: time, level, name, message,
/// and the fields that the message doesn't contain. Each line is one write, so that lines of
/// several threads and processes don't mix. A line that can't be written is dropped.
STELA_FRAMEWORK_EXPORT LogSink& log_to_stderr() noexcept;

/// Sinks that drop everything. They are the default.
STELA_FRAMEWORK_EXPORT LogSink& no_log() noexcept;
STELA_FRAMEWORK_EXPORT MetricSink& no_metrics() noexcept;

}  // namespace stela
