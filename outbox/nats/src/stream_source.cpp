#include "stream_source.hpp"

#include "connect.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <variant>

namespace stela::nats {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Messages that closely follow the first one belong to the same batch.
constexpr milliseconds gather_for{1};
/// Batches per request: a long line idles for only one round trip between requests.
constexpr int batches_asked = 20;
/// The bytes of a message besides its headers and payload.
constexpr std::int64_t envelope_bytes{64 * 1024};
constexpr std::string_view no_room = "Message Size Exceeds MaxBytes";
constexpr std::string_view batch_completed = "Batch Completed";
constexpr std::string_view consumer_deleted = "Consumer Deleted";
/// How late the broker may report that there is nothing. Servers before 2.10 report nothing at all
/// once they have forgotten the consumer.
constexpr milliseconds longest_silence{2'000};
/// How long requested messages may take on a slow line. Servers disconnect a client that reads
/// nothing for longer.
constexpr milliseconds longest_on_line{8'000};
/// The broker forgets a consumer that makes no requests for this long.
constexpr std::chrono::minutes reader_forgotten_after{5};
constexpr int stream_not_found = 10059;

jsOptions within(milliseconds timeout) {
  jsOptions asking;
  jsOptions_Init(&asking);
  asking.Wait = timeout.count();
  return asking;
}

}  // namespace

StreamSource::StreamSource(const ConsumerOptions& options, Contents contents)
    : options_{options}, contents_{contents} {
  connection_ = Denials::connect(denials_, options);
  context_ = use_jetstream(connection_.get(), api_);
  request_bytes_ = std::max(options.prefetch_bytes,
                            natsConnection_GetMaxPayload(connection_.get()) + envelope_bytes);
  look();
}

StreamSource::~StreamSource() {
  incoming_.reset();
  // A forked child leaves its parent's consumer alone.
  if (maker_.is_this()) remove_consumer();
}

// --- the stream

std::string StreamSource::doing_read() const {
  return doing_read(options_.stream);
}

std::string StreamSource::doing_read(const std::string& stream) {
  return "reading the JetStream stream '" + stream + "'";
}

StreamEnds StreamSource::look() try {
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_GetStreamInfo(&raw, context_.get(), options_.stream.c_str(), nullptr, &code);
  if (status != NATS_OK) fail_to_find_stream(status, code);
  const StreamInfoHandle info = take_stream_info(raw, doing_read());
  if (info->Config->Retention == js_LimitsPolicy) {
    return {info->Created, info->State.FirstSeq, info->State.LastSeq};
  }
  throw UsageError{"the JetStream stream '" + options_.stream + "' has " +
                   (info->Config->Retention == js_InterestPolicy ? "interest" : "workqueue") +
                   " retention: a message would be removed before its effect is committed; make a "
                   "stream with limits retention that sources this one, and consume that"};
} catch (const BrokerFailed&) {
  fail_if_denied();
  throw;
}

void StreamSource::fail_to_find_stream(natsStatus status, jsErrCode code) const {
  const std::string problem = doing_read() + " failed: " + in_words(status, code);
  const bool is_missing = status == NATS_NO_RESPONDERS ||
                          kind_of({.code = static_cast<int>(code)}) == Answer::Kind::misconfigured;
  if (is_missing) throw Misconfigured{problem};
  if (status == NATS_TIMEOUT) throw BrokerSilent{problem};
  throw BrokerFailed{problem};
}

void StreamSource::fail_if_denied() const {
  denials_->fail_if_any(doing_read() + " failed for the consumer '" + options_.name + "'");
}

/// Repeats a question that isn't answered in time while bytes still arrive: the answer comes behind
/// the messages that were requested before.
natsStatus StreamSource::ask_behind_messages(FunctionRef<natsStatus()> ask) {
  const Steady end = std::chrono::steady_clock::now() + longest_on_line;
  while (true) {
    const std::uint64_t before = received_bytes(connection_.get());
    const natsStatus status = ask();
    const bool still_arrives = received_bytes(connection_.get()) > before;
    if (status != NATS_TIMEOUT || !still_arrives || std::chrono::steady_clock::now() > end) {
      return status;
    }
  }
}

/// Prepares a request about another stream, which the account may not be allowed to make.
/// BrokerFailed once the denial is known.
void StreamSource::spare(const std::string& subject, const std::string& stream) {
  if (stream == options_.stream) return;
  denials_->spare(subject);
  if (!denials_->has_denied(subject)) return;
  throw BrokerFailed{doing_read(stream) + " failed: the NATS server denies " + subject};
}

std::uint64_t StreamSource::last_of(const std::string& stream) {
  const std::string subject = api_ + "STREAM.INFO." + stream;
  spare(subject, stream);
  jsOptions asking = within(options_.connect_timeout);
  jsStreamInfo* raw = nullptr;
  jsErrCode code{};
  const natsStatus status = ask_behind_messages(
      [&] { return js_GetStreamInfo(&raw, context_.get(), stream.c_str(), &asking, &code); });
  const StreamInfoHandle info{raw};
  if (status == NATS_OK) return info->State.LastSeq;
  if (static_cast<int>(code) == stream_not_found) return 0;
  spare(subject, stream);
  throw BrokerFailed{doing_read(stream) + " failed: " + in_words(status, code)};
}

std::optional<std::uint64_t> StreamSource::next_after(const std::string& stream,
                                                      const std::string& filter,
                                                      std::uint64_t position) {
  const std::string subjects = filter.empty() ? ">" : filter;
  const auto found = get(stream, "{\"seq\":" + std::to_string(position + 1) +
                                     ",\"next_by_subj\":\"" + subjects + "\"}");
  return found ? std::optional{found->sequence} : std::nullopt;
}

std::optional<std::int64_t> StreamSource::time_of(std::uint64_t sequence) {
  const auto found = get(options_.stream, "{\"seq\":" + std::to_string(sequence) + '}');
  return found ? std::optional{found->time} : std::nullopt;
}

/// Unset if the message or the stream doesn't exist.
std::optional<StoredMessage> StreamSource::get(const std::string& stream,
                                               const std::string& question) try {
  const std::string subject = api_ + "STREAM.MSG.GET." + stream;
  spare(subject, stream);
  natsMsg* raw = nullptr;
  const natsStatus status = ask_behind_messages([&] {
    return natsConnection_RequestString(&raw, connection_.get(), subject.c_str(), question.c_str(),
                                        options_.connect_timeout.count());
  });
  const MessageHandle message{raw};
  if (status != NATS_OK) spare(subject, stream);
  if (status != NATS_OK) fail_if_denied();
  check(status, doing_read(stream));
  auto reply = read_whole_message(
      {natsMsg_GetData(raw), static_cast<std::size_t>(natsMsg_GetDataLength(raw))});
  if (auto* const found = std::get_if<StoredMessage>(&reply)) return std::move(*found);
  const ApiError& error = std::get<ApiError>(reply);
  if (is_missing_message(error) || error.code == stream_not_found) return {};
  throw BrokerFailed{doing_read(stream) + " failed: " + in_words(error)};
} catch (const codec::DecodeError& e) {
  throw BrokerFailed{doing_read(stream) + " failed: the reply can't be read: " + e.what()};
}

void StreamSource::stand_at(std::uint64_t position) {
  // After a pause the broker may have forgotten the consumer.
  const bool is_fresh = std::chrono::steady_clock::now() < asked_ + reader_forgotten_after / 2;
  if (is_fresh && !consumer_.empty() && position_ == position) return;
  remove_consumer();
  make_consumer(position);
}

void StreamSource::remove_consumer() noexcept {
  if (consumer_.empty()) return;
  denials_->spare(api_ + "CONSUMER.DELETE." + options_.stream + '.' + consumer_);
  jsOptions asking = within(std::min(options_.connect_timeout, milliseconds{500}));
  js_DeleteConsumer(context_.get(), options_.stream.c_str(), consumer_.c_str(), &asking, nullptr);
  consumer_.clear();
}

void StreamSource::make_consumer(std::uint64_t position) {
  std::string name = options_.name + '-' + make_inbox().substr(std::string_view{"_INBOX."}.size());
  std::replace(name.begin(), name.end(), '.', '_');
  jsConsumerConfig config;
  jsConsumerConfig_Init(&config);
  config.Name = name.c_str();
  config.DeliverPolicy = js_DeliverByStartSequence;
  config.OptStartSeq = position + 1;
  config.AckPolicy = js_AckNone;
  config.HeadersOnly = contents_ == Contents::headers;
  config.MemoryStorage = true;
  config.Replicas = 1;
  config.InactiveThreshold = nanoseconds{reader_forgotten_after}.count();
  if (!options_.filter_subject.empty()) config.FilterSubject = options_.filter_subject.c_str();
  jsErrCode code{};
  const natsStatus made =
      js_AddConsumer(nullptr, context_.get(), options_.stream.c_str(), &config, nullptr, &code);
  const std::string doing = "making a consumer of the stream '" + options_.stream +
                            "' (JetStream error " + std::to_string(static_cast<int>(code)) + ')';
  constexpr int invalid_request = 10025;
  constexpr int filter_is_no_subset = 10093;
  if (made != NATS_OK && !options_.filter_subject.empty() &&
      (code == filter_is_no_subset || code == invalid_request)) {
    throw Misconfigured{doing + " failed: no subject of the stream matches the filter_subject '" +
                        options_.filter_subject + "'; correct it"};
  }
  check(made, doing);
  consumer_ = name;
  position_ = position;
  next_number_ = 1;
  inbox_ = make_inbox() + '.';
  incoming_ = std::make_unique<Incoming>(connection_, inbox_ + '*');
  owed_ = 0;
  is_too_large_ = false;
  asked_ = std::chrono::steady_clock::now();
}

// --- requests

void StreamSource::ask(int limit) {
  // A message too large for a shared batch comes alone, whatever its size.
  owed_ = is_too_large_ ? 1 : limit * batches_asked;
  const std::string most =
      is_too_large_ ? std::string{} : ",\"max_bytes\":" + std::to_string(request_bytes_);
  const std::string subject = api_ + "CONSUMER.MSG.NEXT." + options_.stream + '.' + consumer_;
  const std::string request = "{\"batch\":" + std::to_string(owed_) + most + ",\"expires\":" +
                              std::to_string(nanoseconds{options_.idle_wait}.count()) + '}';
  const std::string reply = inbox_ + std::to_string(++request_);
  check(natsConnection_PublishRequestString(connection_.get(), subject.c_str(), reply.c_str(),
                                            request.c_str()),
        "asking for messages");
  is_unanswered_ = true;
  heard_ = asked_ = std::chrono::steady_clock::now();
}

/// True if the broker silently stopped sending for the last request. Messages that it has sent
/// arrive before the answer to a ping.
bool StreamSource::is_request_lost() {
  const Steady now = std::chrono::steady_clock::now();
  const Steady expected = heard_ + options_.idle_wait + longest_silence;
  if (owed_ <= 0 || now < expected) return false;
  const milliseconds wait = std::max(options_.connect_timeout / 4, milliseconds{1});
  const natsStatus status = natsConnection_FlushTimeout(connection_.get(), wait.count());
  if (!incoming_->is_empty()) return false;
  return status != NATS_TIMEOUT || now > expected + longest_on_line;
}

/// A status goes to a subject of the request. A stream's message keeps its own subject, and may
/// have any headers.
bool StreamSource::is_status(natsMsg* message) const {
  return std::string_view{natsMsg_GetSubject(message)}.starts_with(inbox_);
}

/// The broker's status of a request, after which it sends nothing more for it.
void StreamSource::take_status(natsMsg* message) {
  const std::string_view status = MessageHeaders{message}.get("Status");
  if (status == "100") return;
  if (natsMsg_GetSubject(message) != inbox_ + std::to_string(request_)) return;
  owed_ = still_owed(message);
  const std::string_view reason = MessageHeaders{message}.get("Description");
  // Servers from 2.10 on report immediately that the consumer is gone.
  const bool is_gone = natsMsg_IsNoResponders(message) || reason == consumer_deleted;
  if (is_gone && !is_remade_) return forget();
  const bool is_first = is_unanswered_ && owed_ == 0;
  if (reason == no_room && !(is_first && is_too_large_)) {
    is_too_large_ = is_first;
    return;
  }
  const bool is_well = status == "404" || status == "408" || reason == batch_completed;
  // Even a good status would cause a busy loop if it arrived immediately each time without a
  // message.
  const bool is_early = is_first && heard_ < asked_ + options_.idle_wait / 2;
  if (is_well && !is_early) {
    is_remade_ = false;
    return;
  }
  refusal_ = "asking the stream '" + options_.stream + "' for messages failed: ";
  if (natsMsg_IsNoResponders(message)) {
    refusal_ += "no responders";
  } else {
    refusal_.append(status).append(" ").append(reason);
  }
}

/// How many messages follow the status that ends their request. Newer servers send a message only
/// after replicating the consumer's progress, but the status immediately; it tells how many they
/// won't send.
int StreamSource::still_owed(natsMsg* status) const {
  const MessageHeaders headers{status};
  int unsent = headers.get("Description") == batch_completed ? 0 : owed_;
  const std::string_view told = headers.get("Nats-Pending-Messages");
  std::from_chars(told.data(), told.data() + told.size(), unsent);
  return std::clamp(owed_ - unsent, 0, std::max(owed_, 0));
}

void StreamSource::forget() {
  consumer_.clear();
  is_remade_ = true;
  throw SourceForgotten{};
}

void StreamSource::fail_if_refused() {
  if (!refusal_.empty()) throw BrokerFailed{std::exchange(refusal_, {})};
}

std::vector<Delivery> StreamSource::fetch(int limit, milliseconds wait) {
  fail_if_refused();
  const Steady until = std::chrono::steady_clock::now() + wait;
  std::vector<Delivery> deliveries;
  // Only the end of the last request may arrive.
  do {
    if (incoming_->is_empty()) {
      if (is_request_lost()) forget();
      if (owed_ <= 0) ask(limit);
    }
    deliveries = gather(limit, until);
  } while (deliveries.empty() && owed_ <= 0 && refusal_.empty() &&
           std::chrono::steady_clock::now() < until);
  // Messages from before the refusal are handled first. The next batch arrives meanwhile.
  if (deliveries.empty()) fail_if_refused();
  if (!deliveries.empty() && owed_ <= 0 && refusal_.empty()) ask(limit);
  return deliveries;
}

std::vector<Delivery> StreamSource::gather(int limit, Steady until) {
  std::vector<Delivery> deliveries;
  while (static_cast<int>(deliveries.size()) < limit && (owed_ > 0 || !incoming_->is_empty())) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    const milliseconds most = std::max(left, milliseconds{0});
    MessageHandle message = incoming_->next(deliveries.empty() ? most : gather_for);
    if (message == nullptr) break;
    heard_ = std::chrono::steady_clock::now();
    if (is_status(message.get())) {
      take_status(message.get());
    } else {
      deliveries.push_back(take(std::move(message)));
    }
  }
  return deliveries;
}

Delivery StreamSource::take(MessageHandle message) {
  --owed_;
  is_unanswered_ = is_remade_ = is_too_large_ = false;
  BrokerPlace place = place_of(message.get());
  place.stream = options_.stream;
  if (place.number != next_number_ || place.sequence <= position_) {
    throw BrokerFailed{"message " + std::to_string(next_number_) +
                       " of those that were asked for got lost on its way"};
  }
  if (options_.filter_subject.empty() && place.sequence > position_ + 1) {
    check_hole(place.sequence);
  }
  ++next_number_;
  position_ = place.sequence;
  return deliver(std::move(message), place);
}

/// A message that the broker left out must be missing in the stream; otherwise this replica lacks
/// it.
void StreamSource::check_hole(std::uint64_t sequence) {
  const std::uint64_t next = next_after(options_.stream, {}, position_).value_or(sequence);
  if (next >= sequence) return;
  throw BrokerFailed{doing_read() + " failed: the server left out message " + std::to_string(next) +
                     ", which the stream has"};
}

}  // namespace stela::nats
