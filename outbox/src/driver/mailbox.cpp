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

std::vector<Answer> Mailbox::answers() {
  const std::lock_guard lock{mutex_};
  return std::exchange(answers_, {});
}

}  // namespace stela::relay
