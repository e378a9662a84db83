// A JetStream stream as a consumer reads it: in order, from a given position.
#pragma once

#include "connection.hpp"
#include "database/owner.hpp"
#include "delivery.hpp"
#include "denials.hpp"
#include "handles.hpp"
#include "incoming.hpp"
#include "message_source.hpp"
#include "replies.hpp"
#include "subject_layout.hpp"

#include <stela/nats/consumer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::nats {

/// Reads by its own consumer at the broker: in memory, without acknowledgements, forgotten when
/// unused. The server's cursors aren't trusted: `begin_after` says where reading begins, and
/// messages are checked for holes. A broken connection isn't repaired: after BrokerFailed make a
/// new source.
///
/// Asks for messages itself: natsSubscription_Fetch of nats.c 3.4 writes past the end of its list
/// when more than half of a batch has already arrived. Only one request is open at a time, so its
/// bytes bound the unhandled messages. Threads: one at a time.
class StreamSource final : public MessageSource {
 public:
  /// Which parts of each message arrive.
  enum class Contents : std::uint8_t { all, headers };

  /// BrokerFailed if the broker can't be reached, Misconfigured if it has no such stream or denies
  /// a required permission, UsageError if the stream drops messages once they are read.
  explicit StreamSource(const ConsumerOptions& options, Contents contents = Contents::all);
  /// Tells the broker to forget its consumer, if possible.
  ~StreamSource() override;
  StreamSource(const StreamSource&) = delete;
  StreamSource& operator=(const StreamSource&) = delete;

  StreamEnds look() override;
  std::optional<std::int64_t> time_of(std::uint64_t sequence) override;
  std::uint64_t last_of(const std::string& stream) override;
  std::optional<std::uint64_t> next_after(const std::string& stream, const std::string& filter,
                                          std::uint64_t position) override;
  void stand_at(std::uint64_t position) override;
  /// After a full batch it requests the next one at once, to arrive while this one is handled.
  std::vector<Delivery> fetch(int limit, std::chrono::milliseconds wait) override;
  void fail_if_denied() const override;
  /// The place of the last message that `fetch` returned, or the place where it began.
  std::uint64_t position() const noexcept { return position_; }

 private:
  using Steady = std::chrono::steady_clock::time_point;

  void make_consumer(std::uint64_t position);
  void remove_consumer() noexcept;
  [[noreturn]] void fail_to_find_stream(natsStatus status, jsErrCode code) const;
  void spare(const std::string& subject, const std::string& stream);
  natsStatus ask_behind_messages(FunctionRef<natsStatus()> ask);
  std::optional<StoredMessage> get(const std::string& stream, const std::string& question);
  std::string doing_read() const;
  static std::string doing_read(const std::string& stream);

  // Requests for messages and their results.
  void ask(int limit);
  bool is_request_lost();
  std::vector<Delivery> gather(int limit, Steady until);
  Delivery take(MessageHandle message);
  void check_hole(std::uint64_t sequence);
  bool is_status(natsMsg* message) const;
  void take_status(natsMsg* message);
  int still_owed(natsMsg* status) const;
  [[noreturn]] void forget();
  void fail_if_refused();

  const database::OwningProcess maker_;
  const ConsumerOptions& options_;
  const Contents contents_;
  const std::string api_{api_prefix(options_.api)};
  const std::shared_ptr<Denials> denials_{std::make_shared<Denials>()};
  Connection connection_;
  ContextHandle context_;
  /// The consumer at the broker; empty until it is created.
  std::string consumer_;
  std::uint64_t position_ = 0;
  /// The broker has forgotten the previous consumer, and nothing has arrived since.
  bool is_remade_ = false;
  /// The number that the broker's consumer will give the next message.
  std::uint64_t next_number_ = 1;
  /// Receives requested messages; null until the first request.
  std::unique_ptr<Incoming> incoming_;
  /// Where messages are sent. Statuses go to the same subject followed by the request's number.
  std::string inbox_;
  /// The last request: when it was sent, when something arrived, how many messages the broker still
  /// owes it, whether none has arrived, and whether the next message was too large for it.
  std::int64_t request_ = 0;
  Steady asked_{};
  Steady heard_{};
  int owed_ = 0;
  bool is_unanswered_ = false;
  bool is_too_large_ = false;
  /// The most bytes requested at once.
  std::int64_t request_bytes_ = 0;
  /// Why the last request was refused.
  std::string refusal_;
};

}  // namespace stela::nats
