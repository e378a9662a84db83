// Threads for asynchronous calls, as many as they ask for.
#pragma once

#include <stela/eventstore/async.hpp>

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace stela::test {

/// Begins a thread for each task. Must outlive what uses it. Threads: any number at once.
class ThreadEach {
 public:
  AsyncStore::Post post() {
    return [this](AsyncStore::Task task) {
      const std::lock_guard lock{mutex_};
      threads_.emplace_back(std::move(task));
    };
  }

 private:
  std::mutex mutex_;
  std::vector<std::jthread> threads_;
};

}  // namespace stela::test
