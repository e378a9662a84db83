// A thread for each task of asynchronous calls.
#pragma once

#include <stela/eventstore/async.hpp>

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace stela::test {

/// Starts a thread for each task. Must outlive its users. Threads: any number at once.
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
