#include "denials.hpp"

namespace stela::nats {
namespace {

using Hold = std::shared_ptr<Denials>;

void forget(void* hold) {
  delete static_cast<Hold*>(hold);
}

void on_closed(natsConnection*, void* hold) {
  forget(hold);
}

}  // namespace

std::string why_denied(natsStatus status) {
  // The connection's own last error may already be a later one.
  const char* const last = nats_GetLastError(nullptr);
  return last != nullptr && *last != '\0' ? last : natsStatus_GetText(status);
}

std::string_view denied_subject(std::string_view why) noexcept {
  const std::size_t begin = why.find('"');
  if (begin == std::string_view::npos) return {};
  return why.substr(begin + 1, why.find('"', begin + 1) - begin - 1);
}

Closure Denials::listen(const std::shared_ptr<Denials>& denials, natsOptions* options) {
  Closure hold{new Hold{denials}, forget};
  check(natsOptions_SetErrorHandler(options, on_error, hold.get()), "listening for errors");
  check(natsOptions_SetClosedCB(options, on_closed, hold.get()), "listening for the end");
  return hold;
}

void Denials::spare(const std::string& subject) {
  const std::lock_guard lock{mutex_};
  spared_.insert(subject);
}

bool Denials::has_denied(const std::string& spared) const {
  const std::lock_guard lock{mutex_};
  return denied_.contains(spared);
}

void Denials::fail_if_any(const std::string& needed_for) const {
  const std::lock_guard lock{mutex_};
  if (reason_.empty()) return;
  throw Misconfigured{needed_for + ": the NATS server denies what that needs: " + reason_};
}

void Denials::on_error(natsConnection* connection, natsSubscription*, natsStatus status,
                       void* denials) {
  if (status != NATS_NOT_PERMITTED) return;
  if ((*static_cast<Hold*>(denials))->take(why_denied(status))) natsConnection_Close(connection);
}

bool Denials::take(const std::string& why) {
  const std::lock_guard lock{mutex_};
  const std::string_view subject = denied_subject(why);
  if (spared_.contains(subject)) {
    denied_.emplace(subject);
    return false;
  }
  if (reason_.empty()) reason_ = why;
  return true;
}

}  // namespace stela::nats
