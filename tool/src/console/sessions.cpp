#include "console/sessions.hpp"

#include "cli/exit.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

namespace stela::tool {
namespace {

/// Beyond this, the session that was unused longest is dropped.
constexpr std::size_t most_sessions = 64;

}  // namespace

std::string new_secret() {
  std::array<unsigned char, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Exit{failed, "the kernel gives no random bytes"};
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

bool is_same_secret(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  unsigned char differences = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences |= static_cast<unsigned char>(static_cast<unsigned char>(a[i]) ^
                                              static_cast<unsigned char>(b[i]));
  }
  return differences == 0;
}

std::string Sessions::new_link(Clock::time_point now) {
  const std::lock_guard lock{mutex_};
  link_ = new_secret();
  link_until_ = now + link_lasts;
  return link_;
}

std::optional<Sessions::Session> Sessions::open(std::string_view link, Clock::time_point now) {
  const std::lock_guard lock{mutex_};
  if (link_.empty() || now >= link_until_ || !is_same_secret(link, link_)) return {};
  link_.clear();
  return add({}, now);
}

Sessions::Session Sessions::open_for(Holder holder, Clock::time_point now) {
  const std::lock_guard lock{mutex_};
  return add(std::move(holder), now);
}

Sessions::Session Sessions::add(Holder holder, Clock::time_point now) {
  forget_unused(holder, now);
  Session session{new_secret(), new_secret()};
  sessions_.emplace(session.id, Known{session.token, now, std::move(holder)});
  return session;
}

std::optional<std::string> Sessions::token_of(std::string_view id, Clock::time_point now,
                                              Holder* holder) {
  const std::lock_guard lock{mutex_};
  const auto known = sessions_.find(id);
  if (known == sessions_.end() || now >= known->second.used + session_lasts) return {};
  known->second.used = now;
  if (holder != nullptr) *holder = known->second.holder;
  return known->second.token;
}

void Sessions::forget_unused(const Holder& holder, Clock::time_point now) {
  std::erase_if(sessions_, [&](const auto& one) { return now >= one.second.used + session_lasts; });
  std::size_t theirs = 0;
  auto oldest = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if (at->second.holder.name != holder.name) continue;
    ++theirs;
    const bool is_first = oldest == sessions_.end();
    if (is_first || at->second.used < oldest->second.used) oldest = at;
  }
  if (theirs >= most_sessions) sessions_.erase(oldest);
}

}  // namespace stela::tool
