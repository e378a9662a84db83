// That a process lives, as others see it: a lock that ends with its connection.
#pragma once

#include "database/presence.hpp"
#include "postgres/server_session.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace stela::postgres {

/// Behind a pooler nobody sees it: locks of a session would be the pooler's.
class Presence final : public database::Presence {
 public:
  explicit Presence(Sessions& sessions);

  std::int64_t number() const noexcept override { return number_; }
  void renew() override;

 private:
  Sessions& sessions_;
  const std::int64_t number_;
  std::unique_ptr<ServerSession> session_;
};

/// Nothing if the server doesn't say.
std::optional<bool> is_present(Sessions& sessions, std::int64_t number) noexcept;

}  // namespace stela::postgres
