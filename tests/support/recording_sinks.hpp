// Sinks that keep what they are told, as text.
#pragma once

#include <stela/framework/log.hpp>

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// Keeps each entry as "warning snapshot.discarded stream=order-1 version=2".
/// Threads: any number at once; `entries` when they are done.
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

}  // namespace stela::test
