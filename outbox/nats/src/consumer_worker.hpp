// What a consumer does.
#pragma once

#include "inbox_store.hpp"
#include "other_streams.hpp"
#include "pull.hpp"

#include <stela/nats/consumer.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace stela::nats {

/// Why a message of InboxStore::Arrival::another_history is given up.
inline constexpr const char* another_history =
    "another history: the inbox has another event as this version of the stream. Was the store "
    "that published it restored from a backup, or is it a copy?";

/// A handler threw, or misused the transaction that it was lent.
struct HandlerFailed {
  std::string what;
  bool is_permanent = false;
  /// Another release knows the version of the event, or of one that the handler needs.
  bool is_unknown = false;
  /// It committed what it did, and that its message is handled.
  bool is_committed = false;
};

/// A message whose handler failed, and what became of it.
struct Failure {
  enum class Fate : std::uint8_t { held, dead, duplicate, left_to_newer, still_left };

  Delivery* delivery;
  Fate fate;
  std::string error;
};

/// Threads: one at a time.
class Consumer::Worker {
 public:
  Worker(Store& store, const ConsumerOptions& options);

  void add(std::string_view event, std::unique_ptr<Handler> handler);
  void on_tick(std::function<void(const ConsumerTick&)> listener);
  ConsumerTick poll();
  void run(std::stop_token stop);

 private:
  using Steady = std::chrono::steady_clock::time_point;
  /// What a transaction did, to be told once it is committed.
  struct Together {
    ConsumerTick tick = {};
    std::vector<Failure> failures = {};
    /// Statements that failed in handlers that went on: the event, and the error.
    std::vector<std::pair<std::string, std::string>> caught = {};
  };

  // Going round.
  /// True if something came for the first time.
  bool turn(std::chrono::milliseconds wait);
  void hand_back();
  /// False if there was trouble that passes.
  bool try_turn();
  void note_broker_works();
  void note_trouble(const Error& trouble);
  void pause(std::stop_token& stop);
  void report();
  void measure(const ConsumerTick& tick);
  void measure_held(MetricSink& metrics);
  void purge_if_due();
  void connect();
  void note_settled();

  // Messages.
  void look_for_earlier_ones(std::span<Delivery> batch);
  void handle(std::span<Delivery> batch);
  std::size_t handle_together(std::span<Delivery> batch);
  void transact(FunctionRef<void(Transaction&)> work);
  void handle_alone(Delivery& delivery);
  void handle_one(Transaction& transaction, Delivery& delivery, Together& together);
  /// How it stands in the inbox.
  InboxStore::Arrival look(database::Connection& connection, const Delivery& delivery) const;
  bool is_held(database::Connection& connection, const Delivery& delivery,
               InboxStore::Arrival standing, ConsumerTick& tick);
  static void attempt(Transaction& transaction, FunctionRef<void(Transaction&)> work);
  void call_handler(Transaction& transaction, const ReceivedEvent& event, Together& together);
  void report_caught(const Together& together);
  void answer(std::span<Delivery> batch);

  // Messages that wait in the inbox: consumer_held.cpp.
  std::chrono::milliseconds until_next_held(std::chrono::milliseconds wait);
  void drain();
  void bring_forward_if_due();
  std::vector<HeldMessage> claim();
  void claim_after_asking(Claiming rules, std::vector<HeldMessage>& claimed);
  OnTheirWay ask_what_is_on_its_way();
  void note_gone(const std::vector<std::string>& others);
  std::vector<Delivery> read_held(const std::vector<HeldMessage>& claimed);
  void unclaim(const std::vector<HeldMessage>& claimed) noexcept;
  void lose(const HeldMessage& message);
  void note_losses(const std::vector<LostMessage>& lost);
  void report_loss(const LostMessage& message);
  void skip(const HeldMessage& message, Delivery& delivery);
  void wait_before_draining(const Error& trouble);

  // What fails, or may have killed a process: consumer_failures.cpp.
  bool is_suspect(const Delivery& delivery) const noexcept;
  void handle_suspect(Delivery& delivery);
  void count_beforehand(Delivery& delivery);
  Failure note_failure(database::Connection& connection, Delivery& delivery,
                       const HandlerFailed& failed);
  void note_failure(Delivery& delivery, const HandlerFailed& failed);
  std::optional<Failure> leave_to_newer(database::Connection& connection, Delivery& delivery,
                                        const HandlerFailed& failed);
  void report_failure(const Failure& failure);
  void take_back_failure(const Delivery& delivery) noexcept;
  void bury(Delivery& delivery, int attempts, const std::string& error, bool is_handled = false);
  void retry_letters();
  bool retry(const InboxStore::Letter& letter);
  void note_failed_retry(const InboxStore::Letter& letter, const std::string& error);

  void log(LogLevel level, std::string_view name, const Delivery& delivery,
           const std::string& problem);
  /// Of the broker or the database, and no message.
  void log(LogLevel level, std::string_view name, std::string_view problem);
  Handler* handler_of(const std::string& event) const noexcept;
  Steady now() const;
  std::chrono::milliseconds backoff_after(int attempts);
  std::chrono::milliseconds spread(std::chrono::milliseconds wait);

  Store& store_;
  const ConsumerOptions options_;
  /// Names this consumer to writers that wait while its handler works.
  const std::string who_ = "consumer '" + options_.name + '\'';
  InboxStore inbox_;
  /// Every message of each stream comes here: what is missing can be seen.
  const bool is_whole_;
  std::unique_ptr<Pull> pull_;
  std::vector<std::unique_ptr<Handler>> handlers_;
  OtherStreams other_streams_;
  /// What the broker said last of what is on its way, for as long as it isn't asked again.
  OnTheirWay asked_;
  Steady next_ask_{};
  Steady next_note_of_gone_{};
  int troubles_of_drain_ = 0;
  Steady next_drain_{};
  Steady next_look_ahead_{};
  std::function<void(const ConsumerTick&)> listener_;
  /// A dead letter that is being tried again, and that nobody else has.
  std::optional<InboxStore::Letter> letter_;
  /// Times in a row that letters were left to a newer process, and when they are looked at again.
  int retries_left_to_newer_ = 0;
  Steady next_retry_of_letters_{};
  ConsumerTick tick_;
  /// As in ConsumerTick, and what of it was reported.
  BrokerStatus broker_;
  BrokerStatus reported_broker_;
  Steady next_purge_{};
  /// What the inbox knows of the stream.
  std::optional<Settled> noted_;
  /// Turns in a row that met trouble, and what was last logged of it.
  int troubles_ = 0;
  std::string trouble_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace stela::nats
