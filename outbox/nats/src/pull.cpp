#include "pull.hpp"

#include "connect.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace stela::nats {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

std::string in_words(natsStatus status, jsErrCode code) {
  std::string text = natsStatus_GetText(status);
  if (code != 0) text += " (JetStream error " + std::to_string(static_cast<int>(code)) + ')';
  return text;
}

std::string_view text_of(const char* text) noexcept {
  return text == nullptr ? std::string_view{} : std::string_view{text};
}

Delivery deliver(MessageHandle message) {
  Delivery delivery{.message = std::move(message)};
  natsMsg* const raw = delivery.message.get();
  const char* const reply = natsMsg_GetReply(raw);
  delivery.place = place_in_reply(text_of(reply));
  try {
    delivery.event = read_envelope(MessageHeaders{raw}, delivery.payload());
  } catch (const CorruptEvent& e) {
    delivery.problem = e.what();
  }
  return delivery;
}

/// What comes close behind the first message belongs to the same batch.
constexpr milliseconds gather_for{1};
/// How much later than promised the broker may say that there is nothing.
constexpr milliseconds slack{200};

}  // namespace

Pull::Pull(const ConsumerOptions& options) : options_{options}, ack_wait_{options.ack_wait} {
  connection_ = connect({.url = options.url,
                         .credentials = options.credentials,
                         .tls = options.tls,
                         .timeout = options.connect_timeout});
  jsCtx* context = nullptr;
  check(natsConnection_JetStream(&context, connection_.get(), nullptr), "using JetStream");
  context_.reset(context);
  find_stream();
  make_durable();
}

Pull::~Pull() = default;

void Pull::find_stream() {
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_GetStreamInfo(&raw, context_.get(), options_.stream.c_str(), nullptr, &code);
  if (status != NATS_OK) {
    throw BrokerFailed{"reading the JetStream stream '" + options_.stream +
                       "' failed: " + in_words(status, code)};
  }
  const StreamInfoHandle info{raw};
  has_whole_history_ = options_.start == Start::first && info->State.FirstSeq <= 1;
}

void Pull::make_durable() {
  jsErrCode code{};
  jsConsumerInfo* raw = nullptr;
  const natsStatus status = js_GetConsumerInfo(&raw, context_.get(), options_.stream.c_str(),
                                               options_.name.c_str(), nullptr, &code);
  if (status == NATS_OK) {
    const ConsumerInfoHandle info{raw};
    const jsConsumerConfig& config = *info->Config;
    if (!text_of(config.DeliverSubject).empty() || config.AckPolicy != js_AckExplicit ||
        text_of(config.FilterSubject) != options_.filter_subject) {
      throw UsageError{"the stream '" + options_.stream + "' has a consumer '" + options_.name +
                       "' that isn't this one: it has another filter, or isn't a pull consumer "
                       "with explicit acknowledgements; take another name, or delete that one"};
    }
    return take_ack_wait(nanoseconds{config.AckWait});
  }
  if (status != NATS_NOT_FOUND) {
    throw BrokerFailed{"looking for the consumer '" + options_.name +
                       "' failed: " + in_words(status, code)};
  }
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.Durable = options_.name.c_str();
  config.DeliverPolicy = options_.start == Start::now ? js_DeliverNew : js_DeliverAll;
  config.AckPolicy = js_AckExplicit;
  config.AckWait = nanoseconds{options_.ack_wait}.count();
  // The inbox counts what is a message's own fault; a delivery more or less isn't.
  config.MaxDeliver = -1;
  config.MaxAckPending = options_.max_ack_pending;
  if (!options_.filter_subject.empty()) config.FilterSubject = options_.filter_subject.c_str();
  const natsStatus made =
      js_AddConsumer(nullptr, context_.get(), options_.stream.c_str(), &config, nullptr, &code);
  if (made != NATS_OK) {
    throw BrokerFailed{"making the consumer '" + options_.name + "' on stream '" + options_.stream +
                       "' failed: " + in_words(made, code)};
  }
}

void Pull::take_ack_wait(nanoseconds at_the_broker) {
  ack_wait_ = std::chrono::ceil<milliseconds>(at_the_broker);
  if (!options_.gap_patience || *options_.gap_patience > ack_wait_) return;
  throw UsageError{"gap_patience is " + std::to_string(options_.gap_patience->count()) +
                   " ms, and the consumer '" + options_.name + "' of the stream '" +
                   options_.stream + "' has an ack_wait of " + std::to_string(ack_wait_.count()) +
                   " ms: messages that the broker sends again would count as missing; leave "
                   "gap_patience unset, or make it longer than that"};
}

void Pull::subscribe() {
  natsInbox* inbox = nullptr;
  check(natsInbox_Create(&inbox), "making an inbox");
  inbox_ = inbox;
  natsInbox_Destroy(inbox);
  natsSubscription* subscription = nullptr;
  check(natsConnection_SubscribeSync(&subscription, connection_.get(), inbox_.c_str()),
        "subscribing as '" + options_.name + "'");
  subscription_.reset(subscription);
}

void Pull::ask(int limit, milliseconds wait) {
  const std::string subject = "$JS.API.CONSUMER.MSG.NEXT." + options_.stream + '.' + options_.name;
  const std::string request = "{\"batch\":" + std::to_string(limit) +
                              ",\"expires\":" + std::to_string(nanoseconds{wait}.count()) + '}';
  check(natsConnection_PublishRequestString(connection_.get(), subject.c_str(), inbox_.c_str(),
                                            request.c_str()),
        "asking for messages");
  owed_ = limit;
  owed_until_ = std::chrono::steady_clock::now() + wait + slack;
}

MessageHandle Pull::next(milliseconds wait) {
  natsMsg* raw = nullptr;
  const natsStatus status = natsSubscription_NextMsg(&raw, subscription_.get(), wait.count());
  if (status == NATS_TIMEOUT) return nullptr;
  check(status, "waiting for messages of the stream '" + options_.stream + "'");
  return MessageHandle{raw};
}

/// Nothing more comes for the last request, or nothing ever.
void Pull::take_status(natsMsg* message) {
  const std::string_view status = MessageHeaders{message}.get("Status");
  if (status == "100") return;
  owed_ = 0;
  const std::string_view reason = MessageHeaders{message}.get("Description");
  if (natsMsg_IsNoResponders(message) || reason == "Consumer Deleted") {
    throw BrokerFailed{"the stream '" + options_.stream + "' has no consumer '" + options_.name +
                       "' any more"};
  }
}

std::vector<Delivery> Pull::fetch(int limit, milliseconds wait) {
  const auto now = std::chrono::steady_clock::now();
  if (!subscription_) subscribe();
  const bool is_quick = now - fetched_ < ack_wait_ / 10;
  if ((owed_ <= 0 || now >= owed_until_) && !is_anything_here()) ask(limit, wait);
  std::vector<Delivery> deliveries;
  const auto until = now + wait + slack;
  while (static_cast<int>(deliveries.size()) < limit && (owed_ > 0 || is_anything_here())) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    if (deliveries.empty() && left.count() <= 0) break;
    MessageHandle message = next(deliveries.empty() ? left : gather_for);
    if (message == nullptr) break;
    if (!MessageHeaders{message.get()}.get("Status").empty()) {
      take_status(message.get());
      continue;
    }
    --owed_;
    deliveries.push_back(deliver(std::move(message)));
    deliveries.back().place.stream = options_.stream;
  }
  if (is_quick && static_cast<int>(deliveries.size()) == limit && owed_ <= 0) ask(limit, wait);
  fetched_ = std::chrono::steady_clock::now();
  return deliveries;
}

bool Pull::is_anything_here() {
  int messages = 0;
  natsSubscription_GetPending(subscription_.get(), &messages, nullptr);
  return messages > 0;
}

void Pull::hand_back() {
  if (!subscription_ || (owed_ <= 0 && !is_anything_here())) return;
  // The broker gives up the request; what it sent before is here behind the flush.
  natsSubscription_Drain(subscription_.get());
  flush();
  natsMsg* raw = nullptr;
  while (natsSubscription_NextMsg(&raw, subscription_.get(), 1) == NATS_OK) {
    const Delivery delivery{.message = MessageHandle{raw}};
    if (MessageHeaders{raw}.get("Status").empty()) put_back(delivery, milliseconds{0});
  }
  subscription_.reset();
  owed_ = 0;
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

void Pull::flush() {
  natsConnection_FlushTimeout(connection_.get(), options_.connect_timeout.count());
}

}  // namespace stela::nats
