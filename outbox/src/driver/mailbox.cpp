#include "driver/mailbox.hpp"

#include <utility>

namespace stela::relay {

void Mailbox::take(Answer answer) {
  {
    const std::lock_guard lock{mutex_};
    answers_.push_back(std::move(answer));
  }
  wake();
}

std::span<const Answer> Mailbox::answers() {
  taken_.clear();
  const std::lock_guard lock{mutex_};
  taken_.swap(answers_);
  return taken_;
}

}  // namespace stela::relay
