// A queue in one piece of memory.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stela::relay {

/// What leaves at the front leaves room there, which is used anew once it is half of all.
/// Threads: one at a time.
template <class T>
class Fifo {
 public:
  std::size_t size() const noexcept { return items_.size() - front_; }
  bool empty() const noexcept { return size() == 0; }
  T& operator[](std::size_t i) noexcept { return items_[front_ + i]; }
  const T& operator[](std::size_t i) const noexcept { return items_[front_ + i]; }
  T& back() noexcept { return items_.back(); }
  const T& back() const noexcept { return items_.back(); }
  auto begin() noexcept { return items_.begin() + offset(); }
  auto begin() const noexcept { return items_.begin() + offset(); }
  auto end() noexcept { return items_.end(); }
  auto end() const noexcept { return items_.end(); }

  T& emplace_back() { return items_.emplace_back(); }
  void drop_front(std::size_t count) {
    front_ += count;
    if (front_ * 2 < items_.size()) return;
    items_.erase(items_.begin(), begin());
    front_ = 0;
  }
  void clear() noexcept {
    items_.clear();
    front_ = 0;
  }

 private:
  std::ptrdiff_t offset() const noexcept { return static_cast<std::ptrdiff_t>(front_); }

  std::vector<T> items_;
  std::size_t front_ = 0;
};

}  // namespace stela::relay
