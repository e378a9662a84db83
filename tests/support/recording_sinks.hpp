// Sinks that keep their input as text.
#pragma once

#include <stela/framework/log.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// Keeps each entry as "warning snapshot.discarded stream=order-1 version=2". Threads: any number
/// at once; call `entries` when they are done.
class RecordingLog final : public LogSink {
 public:
  void write(const LogEntry& entry) noexcept override {
    std::string line{to_string(entry.level)};
    line.append(" ").append(entry.name);
    for (const LogEntry::Field& field : entry.fields) {
      line.append(" ").append(field.name).append("=").append(field.value);
    }
    const std::lock_guard lock{mutex_};
    entries_.push_back(std::move(line));
  }
  const std::vector<std::string>& entries() const noexcept { return entries_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> entries_;
};

/// Sums counts by name and labels, as "name{error=usage}", and remembers the other names. Threads:
/// any number at once; read when they are done.
class RecordingMetrics final : public MetricSink {
 public:
  void count(std::string_view name, std::int64_t by, Labels labels) noexcept override {
    std::string key{name};
    for (const Label& label : labels) {
      key.append("{").append(label.name).append("=").append(label.value).append("}");
    }
    const std::lock_guard lock{mutex_};
    counts_[key] += by;
  }
  void gauge(std::string_view name, double value, Labels) noexcept override {
    const std::lock_guard lock{mutex_};
    gauges_[std::string{name}] = value;
  }
  void observe(std::string_view name, double, Labels) noexcept override {
    const std::lock_guard lock{mutex_};
    ++observations_[std::string{name}];
  }

  const std::map<std::string, std::int64_t>& counts() const noexcept { return counts_; }
  const std::map<std::string, double>& gauges() const noexcept { return gauges_; }
  const std::map<std::string, int>& observations() const noexcept { return observations_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, double> gauges_;
  std::map<std::string, int> observations_;
};

}  // namespace stela::test
