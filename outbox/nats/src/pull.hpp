// One connection of a consumer: a durable pull consumer at the broker.
#pragma once

#include "byte_window.hpp"
#include "connection.hpp"
#include "delivery.hpp"
#include "denials.hpp"
#include "durable.hpp"
#include "handles.hpp"
#include "incoming.hpp"
#include "subject_layout.hpp"

#include <stela/nats/consumer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::nats {

/// How far consumers of one name are in a stream.
struct Progress {
  /// As in Settled.
  std::int64_t stream_made_at = 0;
  /// Its last sequence.
  std::uint64_t end = 0;
  /// Nothing up to this place is on its way any more; at least `end` if nothing is left to come.
  std::uint64_t settled_through = 0;
};

/// Makes the durable consumer if it isn't there. Asks for messages itself: natsSubscription_Fetch
/// of nats.c 3.4 writes past the end of its list when more than half of a batch was there already.
/// One request is open at a time, so what the broker sends unhandled is bounded by its bytes.
/// A connection that breaks is not mended: what was fetched and not answered comes again. Threads:
/// one at a time.
class Pull {
 public:
  /// What an inbox knows of the stream.
  using Recall = std::function<std::optional<Settled>()>;

  /// BrokerFailed if the broker can't be reached, Misconfigured if it has no such stream, or denies
  /// what is needed;
  /// UsageError if the durable consumer is there and isn't as it has to be.
  Pull(const ConsumerOptions& options, Recall recall);
  ~Pull();

  /// Waits for the first message at most; then what else is there. Empty if nothing came. Behind a
  /// full batch it asks for the next one at once, to come while this one is handled, unless those
  /// before took so long that the broker would lose patience.
  std::vector<Delivery> fetch(int limit, std::chrono::milliseconds wait);
  /// Puts back what was asked for and not fetched.
  void hand_back();

  /// The messages that stand there in the stream, all asked for together, and what they weigh;
  /// nothing for one that doesn't stand there any more, and the stream's state says so, too: a
  /// server that can't read a message for the moment says that there is none. BrokerFailed if one
  /// can't be read.
  std::vector<std::optional<Delivery>> read(const std::vector<std::uint64_t>& sequences,
                                            std::int64_t bytes);
  /// So many messages, and so many bytes, should be read at once: what the server answers, and the
  /// line carries.
  static constexpr int most_to_read = 256;
  std::int64_t bytes_to_ask() const noexcept;
  /// Nothing up to this place in the stream is on its way to a consumer of this name: it is
  /// acknowledged, or gone.
  std::uint64_t settled_through();
  /// Of this name in another stream; unset if there is no such stream. BrokerFailed if the broker
  /// doesn't say.
  std::optional<Progress> progress_in(const std::string& stream);
  /// `settled_through` as it was when the consumer at the broker was last looked at. Unset where
  /// nobody needs it: a consumer of all messages from the first on is told by their versions what
  /// it has handled.
  const std::optional<Settled>& last_settled() const noexcept { return settled_; }

  void ack(const Delivery& delivery);
  /// It comes again after `delay`; up to a second earlier if the server was started again
  /// meanwhile, which keeps such times to the second.
  void put_back(const Delivery& delivery, std::chrono::milliseconds delay);
  /// It is being worked on: the broker begins to count anew.
  void in_progress(const Delivery& delivery);
  /// Returns when the broker has the answers; false if it doesn't say that it has.
  bool flush();

  /// Misconfigured if the server has denied what is needed, which has ended the connection.
  void fail_if_denied() const;

  /// Nothing that was published is missing at the front of what this consumer gets.
  bool has_whole_history() const noexcept { return has_whole_history_; }
  /// Of the consumer at the broker, whatever the options say.
  std::chrono::milliseconds ack_wait() const noexcept { return ack_wait_; }
  /// See ConsumerOptions.
  std::chrono::milliseconds gap_patience() const noexcept {
    return options_.gap_patience.value_or(2 * ack_wait_);
  }

 private:
  using Steady = std::chrono::steady_clock::time_point;
  /// What is asked for at once comes in much less. Whoever doesn't read for longer is thrown out by
  /// servers, and nobody sees their pings.
  static constexpr std::chrono::milliseconds longest_on_line{8'000};

  // How the stream and the consumer stand at the broker: pull_looks.cpp.
  StreamInfoHandle find_stream(jsOptions* asking = nullptr);
  [[noreturn]] void fail_to_find_stream(natsStatus status, jsErrCode code) const;
  void check_durable_of(const jsStreamInfo& stream);
  void accept(const Durable& durable, const jsStreamInfo& stream);
  void fail_if_paused(const Durable& durable) const;
  std::uint64_t recall_settled(const jsStreamInfo& stream) const;
  bool wants_place() const noexcept;
  void look_again();
  bool is_look_due() const;
  void look_again_if_due();
  void spare(const std::string& subject, const std::string& stream);
  /// How long an answer may take: it comes behind what was asked for.
  std::chrono::milliseconds patience() const noexcept;

  // Requests for messages, and what comes of them.
  void ask(int limit, std::chrono::milliseconds wait);
  bool is_request_over();
  std::vector<Delivery> gather(int limit, Steady until);
  void measure(natsMsg* message);
  bool is_anything_here();
  MessageHandle next(std::chrono::milliseconds wait);
  bool is_status(natsMsg* message) const;
  void take_silence();
  void take_status(natsMsg* message);
  int still_owed(natsMsg* status) const;
  void take_lack_of_room();
  std::string asking() const;
  void fail_if_refused();
  void drop_request();
  void put_back_rest();
  void answer(const Delivery& delivery, const std::string& text);

  // Messages that are read where they stand: pull_reads.cpp.
  void ask_to_read(std::uint64_t sequence, const std::string& reply);
  std::optional<Delivery> read_answer(natsMsg* answer, std::uint64_t sequence) const;
  void fail_unless_left(const std::vector<std::uint64_t>& missing);
  std::string doing_read(std::uint64_t sequence) const;

  const ConsumerOptions& options_;
  const Recall recall_;
  const std::string api_{api_prefix(options_.api)};
  const std::shared_ptr<Denials> denials_{std::make_shared<Denials>()};
  Connection connection_;
  ContextHandle context_;
  /// What is asked for; null until then.
  std::unique_ptr<Incoming> incoming_;
  /// Where messages are sent; requests are numbered behind it, and statuses are sent to those.
  std::string inbox_;
  /// The last request: how many messages the broker still owes to it, whether none has come, when
  /// its end would be early, and when it is over.
  std::int64_t request_ = 0;
  int owed_ = 0;
  bool is_unanswered_ = false;
  /// Neither a message nor a status has come for it.
  bool is_unheard_ = false;
  Steady asked_{};
  Steady early_until_{};
  Steady owed_until_{};
  Steady fetched_{};
  /// When nothing was here last, and when a message was.
  Steady empty_{};
  Steady came_{};
  /// When the consumer at the broker was looked at last.
  Steady looked_{};
  /// The last request ended because the next message had no room in it.
  bool is_full_of_bytes_ = false;
  /// The most that is asked for at once, what the line carries, and what the next message needs; 0
  /// as long as nobody knows better.
  std::int64_t request_bytes_ = 0;
  ByteWindow window_;
  std::int64_t room_ = 0;
  /// Why the last request was refused.
  std::string refusal_;
  bool has_whole_history_ = false;
  std::chrono::milliseconds ack_wait_;
  std::optional<Settled> settled_;
  /// The most that the broker has said: before the first acknowledgement its floor is 0, wherever
  /// the consumer began. Of the stream that was made at that time.
  Settled seen_settled_;
};

}  // namespace stela::nats
