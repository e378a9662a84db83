// A message on its way through a consumer, from the broker or from the parked messages.
#pragma once

#include "envelope.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::nats {

/// The headers of a nats.c message.
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

/// Stored headers.
class KeptHeaders final : public Headers {
 public:
  /// Headers with the same name keep their order.
  using Map = std::multimap<std::string, std::string>;

  explicit KeptHeaders(const Map& headers) noexcept : headers_{headers} {}
  std::string_view get(const char* name) const override;
  bool has_more_than_one(const char* name) const override { return headers_.count(name) > 1; }
  void for_each(FunctionRef<void(std::string_view, std::string_view)> use) const override;

  /// Converts to a JSON object and back. A repeated header becomes a repeated member.
  static std::string to_json(const Headers& headers);
  static Map from_json(std::string_view json);

 private:
  const Map& headers_;
};

/// The place of a message at the broker.
struct BrokerPlace {
  std::string_view stream = {};
  std::uint64_t sequence = 0;
  /// By the broker's clock, in nanoseconds.
  std::int64_t time = 0;
  /// The number that the broker's consumer gave it, from 1.
  std::uint64_t number = 0;
};

/// Parses the acknowledgement subject of a message. BrokerFailed if it is something else.
BrokerPlace place_in_reply(std::string_view reply);
/// The place of a message; BrokerFailed if its reply subject is missing or is something else.
BrokerPlace place_of(natsMsg* message);

struct Delivery {
  MessageHandle message = {};
  BrokerPlace place = {};
  /// Unset if the message isn't one of Stela's.
  std::optional<ReceivedEvent> event = {};
  /// Why the message can't be read; empty if it can.
  std::string problem = {};

  std::string_view payload() const noexcept;
  std::string_view subject() const noexcept;
};

/// Reads a message. If it can't be read as an event of Stela's, the delivery has a problem.
Delivery deliver(MessageHandle message, const BrokerPlace& place);

}  // namespace stela::nats
