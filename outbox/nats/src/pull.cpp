#include "pull.hpp"

#include "connect.hpp"
#include "replies.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace stela::nats {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// What comes close behind the first message belongs to the same batch.
constexpr milliseconds gather_for{1};
/// What a message takes besides its headers and its payload.
constexpr std::int64_t envelope_bytes{64 * 1024};
/// A server's payloads are smaller.
constexpr std::int64_t most_bytes{256 * 1024 * 1024};
constexpr std::string_view no_room = "Message Size Exceeds MaxBytes";
constexpr std::string_view batch_completed = "Batch Completed";
/// How much later than promised the broker may say that there is nothing.
constexpr milliseconds pull_slack{200};

}  // namespace

Pull::Pull(const ConsumerOptions& options, Recall recall)
    : options_{options}, recall_{std::move(recall)} {
  connection_ =
      connect({.url = options.url,
               .credentials = options.credentials,
               .tls = options.tls,
               .timeout = options.connect_timeout,
               .listen = [this](natsOptions* raw) { return Denials::listen(denials_, raw); }});
  context_ = use_jetstream(connection_.get(), api_);
  request_bytes_ = std::max(options.prefetch_bytes,
                            natsConnection_GetMaxPayload(connection_.get()) + envelope_bytes);
  try {
    check_durable_of(*find_stream());
  } catch (const BrokerFailed&) {
    fail_if_denied();
    throw;
  }
}

Pull::~Pull() = default;

/// As much as the line carried in some seconds, and at least one message.
std::int64_t Pull::bytes_to_ask() const noexcept {
  return std::max(std::min(window_.size(), request_bytes_), room_);
}

void Pull::ask(int limit, milliseconds wait) {
  // What needs more room than the line has comes alone.
  owed_ = room_ > 0 ? 1 : limit;
  const std::string subject = api_ + "CONSUMER.MSG.NEXT." + options_.stream + '.' + options_.name;
  const std::string request = "{\"batch\":" + std::to_string(owed_) +
                              ",\"max_bytes\":" + std::to_string(bytes_to_ask()) +
                              ",\"expires\":" + std::to_string(nanoseconds{wait}.count()) + '}';
  const std::string reply = inbox_ + std::to_string(++request_);
  check(natsConnection_PublishRequestString(connection_.get(), subject.c_str(), reply.c_str(),
                                            request.c_str()),
        "asking for messages");
  is_unanswered_ = true;
  is_unheard_ = true;
  is_full_of_bytes_ = false;
  asked_ = std::chrono::steady_clock::now();
  early_until_ = asked_ + wait / 2;
  owed_until_ = asked_ + wait + pull_slack;
}

/// The broker sends nothing more for the last request, or says nothing at all.
bool Pull::is_request_over() {
  if (owed_ <= 0) return true;
  const Steady now = std::chrono::steady_clock::now();
  if (now < owed_until_) return false;
  if (now > owed_until_ + longest_on_line) {
    looked_ = {};
    return true;
  }
  // Its end wasn't told. What was sent for it comes before the answer to a ping, on a slow line
  // long before.
  for (const int part : {8, 4, 2}) {
    const milliseconds wait = std::max(options_.connect_timeout / part, milliseconds{1});
    const natsStatus status = natsConnection_FlushTimeout(connection_.get(), wait.count());
    if (is_anything_here()) return false;
    if (status != NATS_TIMEOUT) return true;
  }
  return false;
}

MessageHandle Pull::next(milliseconds wait) {
  return incoming_->next(wait, "waiting for messages of the stream '" + options_.stream + "'");
}

/// It is sent to the request itself; a message of the stream has a subject of its own, and may have
/// any header.
bool Pull::is_status(natsMsg* message) const {
  return std::string_view{natsMsg_GetSubject(message)}.starts_with(inbox_);
}

/// Servers from 2.10 on say at once that nobody takes the request: most often the consumer at the
/// broker is gone.
void Pull::take_silence() {
  owed_ = 0;
  looked_ = {};
  refusal_ = asking() + "no responders";
}

/// What the broker says of a request: it sends nothing more for it.
void Pull::take_status(natsMsg* message) {
  const std::string_view status = MessageHeaders{message}.get("Status");
  if (status == "100") return;
  const bool is_of_last = natsMsg_GetSubject(message) == inbox_ + std::to_string(request_);
  if (!is_of_last) return;
  is_unheard_ = false;
  if (natsMsg_IsNoResponders(message)) return take_silence();
  owed_ = still_owed(message);
  const std::string_view reason = MessageHeaders{message}.get("Description");
  if (reason == no_room) return take_lack_of_room();
  const bool is_well = status == "404" || status == "408" || reason == batch_completed;
  // Even a status that means well would be a loop without a pause if it came at once each time, and
  // no message.
  const bool is_early =
      is_unanswered_ && owed_ == 0 && std::chrono::steady_clock::now() < early_until_;
  if (is_well && !is_early) return;
  refusal_ = asking().append(status).append(" ").append(reason);
}

/// How many messages come behind the status that ends their request. Newer servers send a message
/// once all copies of the consumer know that they do, and the status at once; it says how many they
/// won't send.
int Pull::still_owed(natsMsg* status) const {
  const MessageHeaders headers{status};
  int unsent = headers.get("Description") == batch_completed ? 0 : owed_;
  const std::string_view told = headers.get("Nats-Pending-Messages");
  std::from_chars(told.data(), told.data() + told.size(), unsent);
  return std::clamp(owed_ - unsent, 0, std::max(owed_, 0));
}

void Pull::take_lack_of_room() {
  is_full_of_bytes_ = true;
  if (!is_unanswered_ || owed_ > 0) return;
  // Twice as much if it was stored when the server's max_payload was more.
  room_ = std::max(2 * room_, natsConnection_GetMaxPayload(connection_.get()) + envelope_bytes);
  if (room_ > 2 * most_bytes)
    refusal_ = "the next message of the stream '" + options_.stream + "' is too large";
}

std::string Pull::asking() const {
  return "asking the consumer '" + options_.name + "' of the stream '" + options_.stream +
         "' for messages failed: ";
}

void Pull::fail_if_refused() {
  if (refusal_.empty()) return;
  look_again_if_due();
  throw BrokerFailed{std::exchange(refusal_, {})};
}

std::vector<Delivery> Pull::fetch(int limit, milliseconds wait) {
  fail_if_refused();
  const auto now = std::chrono::steady_clock::now();
  if (!incoming_) {
    inbox_ = make_inbox() + '.';
    incoming_ = std::make_unique<Incoming>(connection_, inbox_ + '*');
  }
  const bool is_quick = now - fetched_ < ack_wait_ / 10;
  std::vector<Delivery> deliveries;
  const auto request = [&] {
    if (!is_anything_here() && is_request_over()) {
      look_again_if_due();
      ask(limit, options_.idle_wait);
    }
    deliveries = gather(limit, now + wait);
    return deliveries.empty() && owed_ <= 0 && refusal_.empty();
  };
  // What was here may be no more than the end of the last request: newer servers tell it. And the
  // next message may be larger than what was asked for.
  if (request() && request() && room_ > 0) request();
  // What came before the refusal is handled first.
  if (deliveries.empty()) fail_if_refused();
  const bool is_full = static_cast<int>(deliveries.size()) == limit || is_full_of_bytes_;
  const bool is_steady = is_quick && is_full && !deliveries.empty() && !is_look_due();
  if (is_steady && owed_ <= 0) ask(limit, options_.idle_wait);
  fetched_ = std::chrono::steady_clock::now();
  return deliveries;
}

std::vector<Delivery> Pull::gather(int limit, Steady until) {
  std::vector<Delivery> deliveries;
  while (static_cast<int>(deliveries.size()) < limit && (is_anything_here() || owed_ > 0)) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    if (deliveries.empty() && left.count() <= 0) break;
    MessageHandle message = next(deliveries.empty() ? left : gather_for);
    if (message == nullptr) break;
    if (is_status(message.get())) {
      take_status(message.get());
      continue;
    }
    measure(message.get());
    --owed_;
    room_ = 0;
    is_unanswered_ = is_unheard_ = false;
    BrokerPlace place = place_of(message.get());
    place.stream = options_.stream;
    deliveries.push_back(deliver(std::move(message), place));
  }
  return deliveries;
}

/// What came while another was handled, or was published meanwhile, took less time than since it
/// was asked for; and more than until nothing was here yet, without the time in which the broker
/// sends.
void Pull::measure(natsMsg* message) {
  constexpr nanoseconds says_nothing = longest_on_line / 8;
  came_ = std::chrono::steady_clock::now();
  const nanoseconds most = came_ - asked_;
  const nanoseconds least = empty_ - asked_ - options_.idle_wait;
  window_.on_stored(natsMsg_GetDataLength(message),
                    most < says_nothing ? most : std::max(least, says_nothing), longest_on_line);
}

bool Pull::is_anything_here() {
  const bool is_empty = incoming_->is_empty();
  if (is_empty) empty_ = std::chrono::steady_clock::now();
  return !is_empty;
}

void Pull::hand_back() {
  if (!incoming_ || (owed_ <= 0 && !is_anything_here())) return;
  // The broker gives up the request; what it sent before is here behind the flush.
  incoming_->drain();
  if (flush()) drop_request();
  put_back_rest();
  incoming_.reset();
  owed_ = 0;
}

void Pull::put_back_rest() try {
  while (is_anything_here()) {
    const Delivery delivery{.message = next(options_.connect_timeout)};
    if (!delivery.message) return;
    if (!is_status(delivery.message.get())) put_back(delivery, milliseconds{0});
  }
} catch (const BrokerFailed&) {
  // What was on a connection that ended comes again by itself.
}

/// Where no other request waits, a server of 2.9 gives what should come again to this one, loses it
/// until the next ack_wait, and sends the last message of the stream again instead. It drops
/// requests that nobody waits for when it is asked about its consumer.
void Pull::drop_request() try {
  find_durable(connection_.get(), options_, patience());
} catch (const BrokerFailed&) {
  // The request is over when it expires.
}

void Pull::answer(const Delivery& delivery, const std::string& text) {
  // One that gets lost comes again, and is known then.
  natsConnection_PublishString(connection_.get(), natsMsg_GetReply(delivery.message.get()),
                               text.c_str());
}

void Pull::ack(const Delivery& delivery) {
  answer(delivery, "+ACK");
}

void Pull::put_back(const Delivery& delivery, milliseconds delay) {
  answer(delivery, "-NAK {\"delay\":" + std::to_string(nanoseconds{delay}.count()) + '}');
}

void Pull::in_progress(const Delivery& delivery) {
  answer(delivery, "+WPI");
}

bool Pull::flush() {
  return natsConnection_FlushTimeout(connection_.get(), options_.connect_timeout.count()) ==
         NATS_OK;
}

}  // namespace stela::nats
