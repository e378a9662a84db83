#include "leader_reads.hpp"

#include "connect.hpp"

#include <stela/framework/codec/codec_error.hpp>

#include <algorithm>
#include <string_view>

namespace stela::nats {
namespace {

/// The status of errors such as "JetStream system temporarily unavailable".
constexpr int unavailable = 503;

}  // namespace

LeaderReads::LeaderReads(Connection connection, const std::string& api, std::string stream,
                         std::chrono::milliseconds timeout, std::uint64_t typical_bytes)
    : connection_{std::move(connection)},
      stream_{std::move(stream)},
      subject_{api + "STREAM.MSG.GET." + stream_},
      timeout_{timeout},
      inbox_{make_inbox() + '.'},
      message_bytes_{in_reply(typical_bytes)} {}

void LeaderReads::read(std::uint64_t first, std::uint64_t last, Take take) {
  for (std::uint64_t next = first; next <= last;) {
    const Replies replies = with_patience([&] { return ask(next, room_for(last - next + 1)); });
    for (const std::optional<Reply>& reply : replies) {
      if (const auto* const message = std::get_if<StoredMessage>(&*reply)) take(*message);
    }
    next += replies.size();
  }
}

std::size_t LeaderReads::room_for(std::uint64_t messages) const noexcept {
  const std::size_t most = std::clamp<std::size_t>(most_bytes_asked / message_bytes_, 1, most_);
  return static_cast<std::size_t>(std::min<std::uint64_t>(messages, most));
}

LeaderReads::Replies LeaderReads::ask(std::uint64_t first, std::size_t count) {
  reply_to_ = inbox_ + std::to_string(++tries_) + '.';
  Replies replies(count);
  for (std::size_t i = 0; i < count; ++i) ask(first + i);
  try {
    receive(first, replies);
  } catch (const Leaderless&) {
    // The line may also be slow.
    most_ = std::max<std::size_t>(most_ / 2, 1);
    throw;
  }
  return replies;
}

void LeaderReads::ask(std::uint64_t sequence) {
  const std::string number = std::to_string(sequence);
  check(natsConnection_PublishRequestString(connection_.get(), subject_.c_str(),
                                            (reply_to_ + number).c_str(),
                                            ("{\"seq\":" + number + '}').c_str()),
        doing_);
}

void LeaderReads::receive(std::uint64_t first, Replies& replies) {
  for (std::size_t missing = replies.size(); missing > 0;) {
    const MessageHandle message = next_reply();
    const std::string_view subject = natsMsg_GetSubject(message.get());
    // This may answer an earlier try, by another server.
    if (!subject.starts_with(reply_to_)) continue;
    const std::uint64_t sequence = number_in(subject.substr(reply_to_.size()));
    std::optional<Reply>& reply = replies.at(static_cast<std::size_t>(sequence - first));
    if (!reply) --missing;
    reply = parse(message.get());
  }
}

MessageHandle LeaderReads::next_reply() {
  natsMsg* raw = nullptr;
  const natsStatus status = natsSubscription_NextMsg(&raw, subscription_.get(), timeout_.count());
  // The client may have dropped replies because they were too many at once: ask for fewer.
  if (status == NATS_TIMEOUT || status == NATS_SLOW_CONSUMER) {
    throw Leaderless{doing_ + " failed: " + natsStatus_GetText(status)};
  }
  check(status, doing_);
  return MessageHandle{raw};
}

LeaderReads::Reply LeaderReads::parse(natsMsg* raw) try {
  if (natsMsg_IsNoResponders(raw)) throw Leaderless{doing_ + " failed: no responders"};
  const std::string_view text{natsMsg_GetData(raw),
                              static_cast<std::size_t>(natsMsg_GetDataLength(raw))};
  message_bytes_ = std::max(message_bytes_, text.size());
  Reply reply = read_whole_message(text);
  const auto* const error = std::get_if<ApiError>(&reply);
  if (error == nullptr || is_missing_message(*error)) return reply;
  const std::string problem = doing_ + " failed: " + in_words(*error);
  if (error->status == unavailable) throw Leaderless{problem};
  throw BrokerFailed{problem};
} catch (const codec::DecodeError& e) {
  throw BrokerFailed{doing_ + " failed: the reply can't be read: " + e.what()};
}

}  // namespace stela::nats
