// That a process lives, as others see it: a lock that ends with its connection.
#pragma once

#include "database/presence.hpp"
#include "postgres/server_session.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace stela::postgres {

class Presence final : public database::Presence {
 public:
  explicit Presence(ConnectionOptions options);

  std::int64_t number() const noexcept override { return number_; }
  void renew() override;

 private:
  const ConnectionOptions options_;
  const std::int64_t number_;
  std::unique_ptr<Connection> connection_;
};

/// Nothing if the server doesn't say.
std::optional<bool> is_present(Sessions& sessions, std::int64_t number) noexcept;

}  // namespace stela::postgres
