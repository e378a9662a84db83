// A message on its way through a consumer: from the broker, or one that was parked.
#pragma once

#include "envelope.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::nats {

/// The headers of a message of nats.c.
class MessageHeaders final : public Headers {
 public:
  explicit MessageHeaders(natsMsg* message) noexcept : message_{message} {}
  std::string_view get(const char* name) const override;
  bool has_more_than_one(const char* name) const override;
  void for_each(FunctionRef<void(std::string_view, std::string_view)> use) const override;

 private:
  std::vector<const char*> all(const char* name) const;

  natsMsg* message_;
};

/// Headers that were kept.
class KeptHeaders final : public Headers {
 public:
  /// A name that comes again keeps its order.
  using Map = std::multimap<std::string, std::string>;

  explicit KeptHeaders(const Map& headers) noexcept : headers_{headers} {}
  std::string_view get(const char* name) const override;
  bool has_more_than_one(const char* name) const override { return headers_.count(name) > 1; }
  void for_each(FunctionRef<void(std::string_view, std::string_view)> use) const override;

  /// As a JSON object, and back. A name that came twice is a member twice.
  static std::string to_json(const Headers& headers);
  static Map from_json(std::string_view json);

 private:
  const Map& headers_;
};

/// Where a message stands at the broker.
struct BrokerPlace {
  std::string_view stream = {};
  std::uint64_t sequence = 0;
  /// Nanoseconds, as the broker counts them.
  std::int64_t time = 0;
  /// What the broker's consumer has counted, from 1.
  std::uint64_t number = 0;
};

/// From the subject that a message is to be acknowledged to. BrokerFailed if it isn't one.
BrokerPlace place_in_reply(std::string_view reply);
/// The same of a message, which may have none.
BrokerPlace place_of(natsMsg* message);

struct Delivery {
  MessageHandle message = {};
  BrokerPlace place = {};
  /// Unset if the message isn't one of Stela's.
  std::optional<ReceivedEvent> event = {};
  /// Why it can't be read; empty if it can.
  std::string problem = {};

  std::string_view payload() const noexcept;
  std::string_view subject() const noexcept;
};

/// A message that can't be read as an event of Stela's has a problem.
Delivery deliver(MessageHandle message, const BrokerPlace& place);

}  // namespace stela::nats
