#include "pull.hpp"

#include "connect.hpp"

#include <stela/framework/error.hpp>

#include <string_view>

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

Delivery deliver(natsMsg* raw) {
  Delivery delivery{.message = MessageHandle{raw}};
  jsMsgMetaData* meta = nullptr;
  check(natsMsg_GetMetaData(&meta, raw), "reading where a message stands");
  const MetaDataHandle owned{meta};
  delivery.place.sequence = meta->Sequence.Stream;
  delivery.place.time = meta->Timestamp;
  try {
    delivery.event = read_envelope(MessageHeaders{raw}, delivery.payload());
  } catch (const CorruptEvent& e) {
    delivery.problem = e.what();
  }
  return delivery;
}

}  // namespace

Pull::Pull(const ConsumerOptions& options) : options_{options} {
  const OptionsHandle settings =
      prepare(options.url, options.credentials, options.tls, options.connect_timeout);
  check(natsOptions_SetAllowReconnect(settings.get(), false), "refusing to reconnect");
  natsConnection* connection = nullptr;
  check(natsConnection_Connect(&connection, settings.get()), "connecting to " + options.url);
  connection_.reset(connection);
  jsCtx* context = nullptr;
  check(natsConnection_JetStream(&context, connection, nullptr), "using JetStream");
  context_.reset(context);
  find_stream();
  make_durable();
  subscribe();
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
    return;
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

void Pull::subscribe() {
  // Bound, not made by the subscription: nats.c deletes what a subscription made when it ends.
  jsSubOptions binding;
  jsSubOptions_Init(&binding);
  binding.Stream = options_.stream.c_str();
  binding.Consumer = options_.name.c_str();
  const char* const filter =
      options_.filter_subject.empty() ? nullptr : options_.filter_subject.c_str();
  natsSubscription* subscription = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_PullSubscribe(&subscription, context_.get(), filter, nullptr, nullptr, &binding, &code);
  if (status != NATS_OK) {
    throw BrokerFailed{"subscribing as '" + options_.name + "' failed: " + in_words(status, code)};
  }
  subscription_.reset(subscription);
}

std::vector<Delivery> Pull::fetch(int limit, milliseconds wait) {
  natsMsgList list{};
  jsErrCode code{};
  const natsStatus status =
      natsSubscription_Fetch(&list, subscription_.get(), limit, wait.count(), &code);
  std::vector<Delivery> deliveries;
  if (status == NATS_TIMEOUT) return deliveries;
  if (status != NATS_OK) {
    throw BrokerFailed{"fetching from stream '" + options_.stream +
                       "' failed: " + in_words(status, code)};
  }
  deliveries.reserve(static_cast<std::size_t>(list.Count));
  for (int i = 0; i < list.Count; ++i) {
    natsMsg* const message = list.Msgs[i];
    list.Msgs[i] = nullptr;
    deliveries.push_back(deliver(message));
    deliveries.back().place.stream = options_.stream;
  }
  natsMsgList_Destroy(&list);
  return deliveries;
}

void Pull::ack(const Delivery& delivery) {
  // One that gets lost comes again, and is known then.
  natsMsg_Ack(delivery.message.get(), nullptr);
}

void Pull::put_back(const Delivery& delivery, milliseconds delay) {
  natsMsg_NakWithDelay(delivery.message.get(), delay.count(), nullptr);
}

void Pull::in_progress(const Delivery& delivery) {
  natsMsg_InProgress(delivery.message.get(), nullptr);
}

void Pull::flush() {
  natsConnection_FlushTimeout(connection_.get(), options_.connect_timeout.count());
}

}  // namespace stela::nats
