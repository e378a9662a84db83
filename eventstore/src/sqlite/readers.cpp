#include "sqlite/readers.hpp"

namespace stela::sqlite {

std::unique_ptr<Connection> Readers::take() {
  // Check this first: a thread that doesn't exist in a forked child may have held the mutex.
  owner_.check();
  {
    const std::lock_guard lock{mutex_};
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  return std::make_unique<Connection>(path_, options_);
}

void Readers::read(FunctionRef<void(Connection&)> work) {
  auto connection = take();
  place_.check_now_and_then();
  // A connection whose read failed isn't kept.
  work(*connection);
  connection->check_immutable();
  const std::lock_guard lock{mutex_};
  if (idle_.size() < max_idle) idle_.push_back(std::move(connection));
}

}  // namespace stela::sqlite
