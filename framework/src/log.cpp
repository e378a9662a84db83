#include <stela/framework/log.hpp>

namespace stela {
namespace {

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

LogSink& no_log() noexcept {
  static NoLog log;
  return log;
}

MetricSink& no_metrics() noexcept {
  static NoMetrics metrics;
  return metrics;
}

}  // namespace stela
