#include "read_backs.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace stela::nats {
namespace {

/// A read-back stops after this many messages, and the next one continues.
constexpr std::uint64_t most_slots = 2'000;

constexpr int no_stream = 10'059;
constexpr int subjects_overlap = 10'065;

constexpr Meaning misfit(FailureClass failure) noexcept {
  return {Answer::Kind::misconfigured, failure};
}

}  // namespace

// --- beginning and ending

Steps ReadBacks::begin(std::uint64_t request, PartitionId partition, std::uint64_t from, Time now) {
  return start(partition,
               {.from = from, .answer = {.request = request, .kind = Answer::Kind::read_back}},
               now);
}

Steps ReadBacks::open(Time now) {
  return start({}, {.answer = {.kind = Answer::Kind::connected}, .opens_session = true}, now);
}

Steps ReadBacks::start(PartitionId partition, ReadBack read_back, Time now) {
  drop(partition);
  read_back.since = now;
  open_.emplace(partition, std::move(read_back));
  ask({.partition = partition,
       .step = Step::look,
       .subject = "STREAM.INFO." + layout_.stream(partition)},
      {}, now);
  return take_steps(now);
}

void ReadBacks::drop(PartitionId partition) {
  open_.erase(partition);
  std::erase(turns_, partition);
  for (auto& [number, asked] : asked_) {
    if (asked.partition == partition) asked.is_dropped = true;
  }
}

void ReadBacks::forget(std::map<std::uint64_t, Asked>::iterator asked) {
  if (asked->second.step == Step::read) {
    --messages_asked_;
    bytes_asked_ -= asked->second.bytes;
  }
  asked_.erase(asked);
}

std::optional<ReadBacks::Asked> ReadBacks::take(std::uint64_t number) {
  const auto at = asked_.find(number);
  if (at == asked_.end()) return std::nullopt;
  Asked asked = at->second;
  forget(at);
  if (asked.is_dropped) return std::nullopt;
  return asked;
}

void ReadBacks::finish(PartitionId partition, std::size_t count) {
  ReadBack& read_back = open_.at(partition);
  Answer answer = std::move(read_back.answer);
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = read_back.slots[i];
    if (slot.message) answer.found.push_back(*std::move(slot.message));
  }
  if (options_.fence == Fence::subject) {
    answer.has_more = count < read_back.slots.size();
    if (answer.has_more) answer.last_sequence = answer.found.back().broker_sequence;
  } else if (count > 0 && read_back.begin + count <= answer.last_sequence) {
    answer.has_more = true;
    answer.last_sequence = read_back.begin + count - 1;
  }
  steps_.answers.push_back(std::move(answer));
  drop(partition);
}

void ReadBacks::fail(PartitionId partition, const Meaning& meaning, std::string why) {
  const ReadBack& read_back = open_.at(partition);
  // The trouble can't belong to a partition while the session isn't open.
  const bool is_lost = read_back.opens_session && meaning.kind != Answer::Kind::misconfigured;
  steps_.answers.push_back({.request = read_back.answer.request,
                            .kind = is_lost ? Answer::Kind::disconnected : meaning.kind,
                            .detail = std::move(why),
                            .failure = meaning.failure});
  drop(partition);
}

void ReadBacks::fail(const Asked& asked, const ApiError& error) {
  Meaning meaning = meaning_of(error);
  if (meaning.kind != Answer::Kind::misconfigured) meaning.kind = Answer::Kind::full;
  fail(asked.partition, meaning, doing(asked) + ": " + in_words(error));
}

std::string ReadBacks::doing(const Asked& asked) const {
  const std::string stream = "the stream '" + layout_.stream(asked.partition) + "'";
  if (asked.step == Step::look) return "reading " + stream;
  if (asked.step == Step::make) return "making " + stream;
  if (options_.fence == Fence::subject) {
    const std::string what = open_.at(asked.partition).walks ? "messages" : "last message";
    return "reading the " + what + " of '" + layout_.subject_of(asked.partition) + "' in " + stream;
  }
  const std::uint64_t sequence = open_.at(asked.partition).begin + asked.slot;
  return "reading message " + std::to_string(sequence) + " of " + stream;
}

// --- asking

Steps ReadBacks::take_steps(Time now) {
  finish_late(now);
  give_up_late(now);
  ask_for_messages(now);
  return std::exchange(steps_, {});
}

void ReadBacks::ask(Asked asked, std::string body, Time now) {
  asked.since = now;
  asked.subject.insert(0, api_);
  if (asked.step == Step::read) {
    ++messages_asked_;
    bytes_asked_ += asked.bytes;
  }
  steps_.requests.push_back({++last_number_, asked.subject, std::move(body)});
  asked_.emplace(last_number_, std::move(asked));
}

void ReadBacks::ask_for_messages(Time now) {
  while (!turns_.empty()) {
    const PartitionId partition = turns_.front();
    ReadBack& read_back = open_.at(partition);
    if (!has_room_for(read_back.message_bytes)) return;
    turns_.pop_front();
    const std::size_t slot = read_back.asked++;
    if (read_back.asked < read_back.slots.size()) turns_.push_back(partition);
    ask({.partition = partition,
         .step = Step::read,
         .slot = slot,
         .bytes = read_back.message_bytes,
         .subject = "STREAM.MSG.GET." + layout_.stream(partition)},
        body_for(read_back, slot, partition), now);
  }
}

bool ReadBacks::has_room_for(std::size_t bytes) const noexcept {
  if (messages_asked_ == 0) return true;
  const std::size_t most = std::min(most_bytes_asked, static_cast<std::size_t>(window_.size()));
  return messages_asked_ < most_messages_asked && bytes_asked_ + bytes <= most;
}

void ReadBacks::measure(std::uint64_t number, std::size_t bytes, Time now) {
  const auto at = asked_.find(number);
  if (at == asked_.end() || at->second.step != Step::read) return;
  window_.on_stored(static_cast<std::int64_t>(bytes), now - at->second.since,
                    options_.publish_timeout);
}

std::string ReadBacks::body_for(const ReadBack& read_back, std::size_t slot,
                                PartitionId partition) const {
  std::string body;
  json::ObjectWriter request{body};
  if (read_back.walks) {
    const bool begins = slot == 0;
    request.add("seq",
                begins ? read_back.begin : read_back.slots[slot - 1].message->broker_sequence + 1);
    request.add("next_by_subj", layout_.subject_of(partition));
  } else if (options_.fence == Fence::subject) {
    request.add("last_by_subj", layout_.subject_of(partition));
  } else {
    request.add("seq", read_back.begin + slot);
  }
  request.close();
  return body;
}

void ReadBacks::give_up_late(Time now) {
  bool misses_messages = false;
  while (!asked_.empty() && asked_.begin()->second.since + options_.publish_timeout <= now) {
    const Asked late = asked_.begin()->second;
    forget(asked_.begin());
    misses_messages |= late.step == Step::read;
    if (late.is_dropped) continue;
    fail(late.partition, {Answer::Kind::unknown, FailureClass::no_answer},
         doing(late) + ": no reply in time");
  }
  // Their replies may still be on the line, ahead of the next ones.
  if (misses_messages) window_.on_missed();
}

// --- replies

Steps ReadBacks::on_reply(std::uint64_t number, std::string_view reply, Time now) {
  measure(number, reply.size(), now);
  if (const auto asked = take(number)) {
    try {
      if (asked->step == Step::read) {
        on_message(*asked, reply);
      } else {
        on_stream(*asked, reply, now);
      }
    } catch (const codec::DecodeError& e) {
      fail(asked->partition, {Answer::Kind::unknown, FailureClass::other},
           doing(*asked) + ": the reply can't be read: " + e.what());
    }
  }
  return take_steps(now);
}

Steps ReadBacks::on_no_responders(std::uint64_t number, Time now) {
  if (const auto asked = take(number)) {
    fail(asked->partition, misfit(FailureClass::no_answer),
         doing(*asked) + ": no server answers the JetStream API on " + asked->subject);
  }
  return take_steps(now);
}

Steps ReadBacks::on_denied(std::string_view subject, std::string_view why, Time now) {
  const auto asked = std::find_if(asked_.begin(), asked_.end(), [&](const auto& entry) {
    return entry.second.subject == subject && !entry.second.is_dropped;
  });
  if (asked != asked_.end()) {
    fail(asked->second.partition, misfit(FailureClass::permission),
         doing(asked->second) + ": " + std::string{why});
  }
  return take_steps(now);
}

void ReadBacks::on_stream(const Asked& asked, std::string_view reply, Time now) {
  const auto read = read_stream_info(reply);
  if (const auto* const info = std::get_if<StreamInfo>(&read)) {
    return plan(asked.partition, *info);
  }
  const auto& error = std::get<ApiError>(read);
  if (error.code == no_stream) return on_missing_stream(asked.partition, error, now);
  if (error.code == subjects_overlap) {
    return fail(asked.partition, misfit(FailureClass::subject),
                doing(asked) + ": its subjects '" + layout_.subjects(asked.partition) +
                    "' overlap with those of another; give each database a prefix of its own");
  }
  fail(asked, error);
}

void ReadBacks::on_missing_stream(PartitionId partition, const ApiError& error, Time now) {
  const std::string stream = layout_.stream(partition);
  if (options_.ensure_stream) {
    return ask({.partition = partition, .step = Step::make, .subject = "STREAM.CREATE." + stream},
               creation_of(stream, layout_.subjects(partition), options_.stream_options), now);
  }
  fail(partition, misfit(FailureClass::stream_missing),
       "there is no JetStream stream '" + stream +
           "'; make it, or let ensure_stream do so: " + in_words(error));
}

void ReadBacks::measure(const StreamInfo& info, Answer& answer) {
  if (info.config.max_message_bytes > 0) {
    answer.size_limit = {info.config.max_message_bytes,
                         "max_msg_size of '" + info.config.name + "'"};
  }
  const std::tuple<const char*, std::int64_t, std::uint64_t> limits[] = {
      {"max_bytes", info.config.max_bytes, info.bytes},
      {"max_msgs", info.config.max_messages, info.messages}};
  for (const auto& [name, most, used] : limits) {
    if (most <= 0) continue;
    const double fullness = static_cast<double>(used) / static_cast<double>(most);
    if (fullness <= answer.fullness) continue;
    answer.fullness = fullness;
    answer.limit = std::string{name} + " of '" + info.config.name + "' is " + std::to_string(most);
  }
}

void ReadBacks::plan(PartitionId partition, const StreamInfo& info) {
  // Check each time, because somebody may have changed the stream.
  Danger danger = danger_in(info.config, layout_.subjects(partition), options_.fence);
  if (!danger.what.empty()) {
    return fail(partition, misfit(danger.failure), std::move(danger.what));
  }
  ReadBack& read_back = open_.at(partition);
  read_back.answer.first_sequence = info.first_sequence;
  read_back.answer.drops_old = info.config.max_age > 0 || info.config.max_messages_per_subject > 0;
  measure(info, read_back.answer);
  if (info.messages > 0) {
    read_back.answer.holes = info.last_sequence - info.first_sequence + 1 - info.messages;
  }
  // For a subject, its last message gives the end.
  read_back.answer.last_sequence = options_.fence == Fence::subject ? 0 : info.last_sequence;
  read_back.begin = std::max(read_back.from, info.first_sequence);
  if (info.messages > 0) read_back.message_bytes = in_reply(info.bytes / info.messages);
  if (read_back.opens_session || info.messages == 0) return finish(partition, 0);
  if (options_.fence == Fence::subject) {
    read_back.slots.resize(1);
  } else if (read_back.begin <= info.last_sequence) {
    read_back.slots.resize(std::min(info.last_sequence - read_back.begin + 1, most_slots));
  }
  if (read_back.slots.empty()) return finish(partition, 0);
  turns_.push_back(partition);
}

void ReadBacks::on_message(const Asked& asked, std::string_view reply) {
  ReadBack& read_back = open_.at(asked.partition);
  auto read = read_message(reply);
  Slot& slot = read_back.slots[asked.slot];
  slot.is_read = true;
  if (auto* const message = std::get_if<FoundMessage>(&read)) {
    slot.message = std::move(*message);
  } else if (const auto& error = std::get<ApiError>(read); !is_missing_message(error)) {
    // Only messages that the server reports as missing count as missing.
    return fail(asked, error);
  }
  // Expect messages as large as the largest so far.
  read_back.message_bytes = std::max(read_back.message_bytes, reply.size());
  while (read_back.read < read_back.slots.size() && read_back.slots[read_back.read].is_read) {
    ++read_back.read;
  }
  if (read_back.walks) return on_next_of_subject(asked.partition);
  if (options_.fence == Fence::subject) return on_last_of_subject(asked.partition);
  if (read_back.read == read_back.slots.size()) finish(asked.partition, read_back.read);
}

/// Usually it is the known message. A server may lose track of a subject's last message when it is
/// deleted, and then compares with none, although there are others.
void ReadBacks::on_last_of_subject(PartitionId partition) {
  ReadBack& read_back = open_.at(partition);
  if (const auto& last = read_back.slots.front().message) {
    read_back.answer.last_sequence = last->broker_sequence;
    if (last->broker_sequence <= read_back.from) return finish(partition, 1);
  }
  read_back.walks = true;
  read_back.slots.assign(1, {});
  read_back.asked = read_back.read = 0;
  turns_.push_back(partition);
}

void ReadBacks::on_next_of_subject(PartitionId partition) {
  ReadBack& read_back = open_.at(partition);
  const std::uint64_t last = read_back.answer.last_sequence;
  if (const auto& next = read_back.slots.back().message) {
    if (next->broker_sequence == last) return finish(partition, read_back.read);
    read_back.slots.emplace_back();
    if (read_back.slots.size() > most_slots) return finish(partition, read_back.read);
    return turns_.push_back(partition);
  }
  if (last > 0) {
    return fail(
        partition, {Answer::Kind::full, FailureClass::other},
        "the last message of '" + layout_.subject_of(partition) + "' was removed meanwhile");
  }
  read_back.slots.pop_back();
  finish(partition, read_back.slots.size());
}

/// The first message is already known, so two are enough for the next read-back to advance.
void ReadBacks::finish_late(Time now) {
  for (auto next = open_.begin(); next != open_.end();) {
    auto& [partition, read_back] = *next++;
    const auto age = now - read_back.since;
    if (age >= options_.publish_timeout / 4) ask_no_more(partition, read_back);
    const bool is_late = age >= options_.publish_timeout / 2;
    const bool is_whole = read_back.read == read_back.slots.size();
    if (read_back.read < 2 || (!is_late && !is_whole)) continue;
    // The requests still in flight were too many.
    if (!is_whole && !read_back.walks) window_.on_missed();
    finish(partition, read_back.read);
  }
}

/// Messages still in flight when a read-back finishes must be requested again by the next one. So a
/// read-back with enough to continue from stops asking while there is time for the replies.
void ReadBacks::ask_no_more(PartitionId partition, ReadBack& read_back) {
  if (read_back.walks || read_back.asked < 2 || read_back.asked == read_back.slots.size()) return;
  read_back.slots.resize(read_back.asked);
  std::erase(turns_, partition);
}

}  // namespace stela::nats
