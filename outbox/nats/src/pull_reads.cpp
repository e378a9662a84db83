// Messages that are read where they stand in the stream.
#include "pull.hpp"

#include "connect.hpp"
#include "replies.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/error.hpp>

#include <charconv>
#include <string_view>
#include <unordered_set>
#include <variant>

namespace stela::nats {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr int no_message_found = 10037;
/// On its way in no time, on any line that is of use.
constexpr std::int64_t few_bytes{64 * 1024};

std::string_view text_of(natsMsg* message) noexcept {
  return {natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))};
}

MessageHandle message_of(const StoredMessage& stored) {
  natsMsg* raw = nullptr;
  check(natsMsg_Create(&raw, stored.subject.c_str(), nullptr, stored.payload.data(),
                       static_cast<int>(stored.payload.size())),
        "taking a message");
  MessageHandle message{raw};
  for (const auto& [name, value] : stored.headers) {
    natsMsgHeader_Add(raw, name.c_str(), value.c_str());
  }
  return message;
}

/// Which request of an inbox is answered.
std::size_t number_behind(const std::string& inbox, natsMsg* answer) noexcept {
  const std::string_view digits = std::string_view{natsMsg_GetSubject(answer)}.substr(inbox.size());
  std::size_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

std::vector<std::optional<Delivery>> Pull::read(const std::vector<std::uint64_t>& sequences,
                                                std::int64_t bytes) {
  const std::string inbox = make_inbox() + '.';
  const Subscription answers = connection_.subscribe(inbox + '*');
  // No limit of the client's: what is asked for is one, and nothing of it is dropped.
  check(natsSubscription_SetPendingLimits(answers.get(), -1, -1),
        "taking messages without a limit");
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    ask_to_read(sequences[i], inbox + std::to_string(i));
  }
  const Steady asked = std::chrono::steady_clock::now();
  const bool is_much = owed_ > 0 || bytes > few_bytes;
  const milliseconds wait = options_.connect_timeout + (is_much ? longest_on_line : 0ms);
  std::vector<std::optional<Delivery>> found(sequences.size());
  std::vector<bool> is_answered(sequences.size());
  std::vector<std::uint64_t> missing;
  for (std::size_t left = sequences.size(); left > 0;) {
    natsMsg* raw = nullptr;
    check(natsSubscription_NextMsg(&raw, answers.get(), wait.count()),
          "reading messages of the stream '" + options_.stream + "'");
    const MessageHandle answer{raw};
    window_.on_stored(natsMsg_GetDataLength(raw), std::chrono::steady_clock::now() - asked,
                      longest_on_line);
    const std::size_t i = number_behind(inbox, raw);
    if (i >= sequences.size() || is_answered[i]) continue;
    is_answered[i] = true;
    --left;
    found[i] = read_answer(raw, sequences[i]);
    if (!found[i]) missing.push_back(sequences[i]);
  }
  if (!missing.empty()) fail_unless_left(missing);
  return found;
}

void Pull::ask_to_read(std::uint64_t sequence, const std::string& reply) {
  const std::string subject = api_ + "STREAM.MSG.GET." + options_.stream;
  const std::string request = "{\"seq\":" + std::to_string(sequence) + '}';
  check(natsConnection_PublishRequestString(connection_.get(), subject.c_str(), reply.c_str(),
                                            request.c_str()),
        doing_read(sequence));
}

/// Nothing if the server says that there is none.
std::optional<Delivery> Pull::read_answer(natsMsg* answer, std::uint64_t sequence) const try {
  const auto read = read_whole_message(text_of(answer));
  if (const auto* const error = std::get_if<ApiError>(&read)) {
    if (error->code == no_message_found) return {};
    throw BrokerFailed{doing_read(sequence) + " failed: " + in_words(*error)};
  }
  const auto& stored = std::get<StoredMessage>(read);
  if (stored.sequence != sequence) {
    throw BrokerFailed{doing_read(sequence) + " failed: the answer is message " +
                       std::to_string(stored.sequence)};
  }
  return deliver(message_of(stored),
                 {.stream = options_.stream, .sequence = sequence, .time = stored.time});
} catch (const codec::DecodeError& e) {
  throw BrokerFailed{doing_read(sequence) + " failed: the answer can't be read: " + e.what()};
}

/// A server that can't read a message for the moment says that there is none: the stream's state
/// says so, too, of one that left it.
void Pull::fail_unless_left(const std::vector<std::uint64_t>& missing) {
  jsOptions asking;
  jsOptions_Init(&asking);
  asking.Stream.Info.DeletedDetails = true;
  const StreamInfoHandle info = find_stream(&asking);
  const jsStreamState& state = info->State;
  const std::unordered_set<std::uint64_t> deleted{state.Deleted, state.Deleted + state.DeletedLen};
  for (const std::uint64_t sequence : missing) {
    const bool has_left =
        sequence < state.FirstSeq || sequence > state.LastSeq || deleted.contains(sequence);
    if (!has_left) throw BrokerFailed{doing_read(sequence) + " failed: no message found"};
  }
}

std::string Pull::doing_read(std::uint64_t sequence) const {
  return "reading message " + std::to_string(sequence) + " of the stream '" + options_.stream + "'";
}

}  // namespace stela::nats
