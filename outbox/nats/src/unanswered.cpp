#include "unanswered.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace stela::nats {
namespace {

/// nats.c truncates an error's text, but keeps at least this much of a subject.
constexpr std::size_t most_compared = 128;

std::size_t hash_of(std::string_view subject) noexcept {
  return std::hash<std::string_view>{}(subject.substr(0, most_compared));
}

}  // namespace

void Unanswered::add(std::uint64_t request, std::string_view subject, Time now) {
  const std::lock_guard lock{mutex_};
  while (!requests_.empty() &&
         (!requests_.front().is_open || requests_.front().sent + limit_ <= now)) {
    requests_.pop_front();
  }
  requests_.push_back({request, hash_of(subject), now});
}

void Unanswered::remove(std::uint64_t request) {
  const std::lock_guard lock{mutex_};
  const auto found = std::lower_bound(
      requests_.begin(), requests_.end(), request,
      [](const Request& one, std::uint64_t number) { return one.number < number; });
  if (found != requests_.end() && found->number == request) found->is_open = false;
}

std::vector<std::uint64_t> Unanswered::take(std::string_view subject) {
  const std::size_t hash = hash_of(subject);
  std::vector<std::uint64_t> numbers;
  const std::lock_guard lock{mutex_};
  for (Request& request : requests_) {
    if (request.subject != hash || !std::exchange(request.is_open, false)) continue;
    numbers.push_back(request.number);
  }
  return numbers;
}

}  // namespace stela::nats
