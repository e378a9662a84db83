#include "database/failure_watch.hpp"

#include <new>
#include <utility>

namespace stela::database {
namespace {

thread_local FailureWatch* innermost = nullptr;

}  // namespace

FailureWatch::FailureWatch(const Connection& connection)
    : database_{connection.database()}, outer_{std::exchange(innermost, this)} {}

FailureWatch::~FailureWatch() {
  innermost = outer_;
}

void FailureWatch::rethrow_failure() const {
  if (failure_) std::rethrow_exception(failure_);
}

bool FailureWatch::is_watching() noexcept {
  return innermost != nullptr;
}

void FailureWatch::note(const DatabaseName& database) noexcept {
  for (FailureWatch* watch = innermost; watch != nullptr; watch = watch->outer_) {
    if (!watch->failure_ && watch->database_.is(database)) {
      watch->failure_ = std::current_exception();
    }
  }
}

void FailureWatch::note_refusal(const DatabaseName& database) noexcept try {
  // Only the innermost watch is told, because only its handler's caller knows the name.
  if (innermost == nullptr || !innermost->refusal_.empty()) return;
  if (innermost->database_.is(database)) throw;
} catch (const std::exception& e) {
  try {
    innermost->refusal_ = e.what();
  } catch (const std::bad_alloc&) {
    // No memory is left to remember it.
  }
}

}  // namespace stela::database
