#include "outbox/file_broker.hpp"

#include <fstream>
#include <utility>

namespace stela::test {
namespace {

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') result += '\'';
    result += c;
  }
  return result += '\'';
}

/// As SQL, whatever bytes it has.
std::string as_sql(std::string_view payload) {
  std::string hex;
  for (const char c : payload) {
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    hex += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return "CAST(x'" + hex + "' AS TEXT)";
}

std::string of(int partition) {
  return " WHERE partition = " + std::to_string(partition);
}

const std::string& made(const std::string& path) {
  std::ofstream{path, std::ios::app};
  return path;
}

}  // namespace

FileBroker::FileBroker(const std::string& path, Fence fence)
    : fence_{fence}, database_{made(path)} {
  database_.run("PRAGMA busy_timeout = 30000; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL");
  database_.run(
      "CREATE TABLE IF NOT EXISTS stored (partition INTEGER NOT NULL, sequence INTEGER NOT NULL, "
      "id TEXT NOT NULL, store TEXT NOT NULL, event INTEGER NOT NULL, redelivery INTEGER NOT NULL, "
      "payload TEXT NOT NULL, PRIMARY KEY (partition, sequence)) WITHOUT ROWID");
}

void FileBroker::connect(std::uint64_t session, AnswerSink& sink) {
  sent_.clear();
  sink_ = &sink;
  session_ = session;
  ++sessions;
  sink.take({.session = session,
             .kind = is_down ? Answer::Kind::disconnected : Answer::Kind::connected,
             .detail = is_down ? "nobody listens" : ""});
}

void FileBroker::disconnect() noexcept {
  sent_.clear();
  sink_ = nullptr;
}

void FileBroker::publish(const OutgoingMessage& message) {
  Request request{.number = message.request, .partition = message.partition.number};
  if (message.predecessor) request.expected = message.predecessor->broker_sequence;
  if (refuse) request.refused = refuse(message);
  if (is_sealed || without_stream.contains(message.partition)) {
    request.refused = Answer::Kind::misconfigured;
  }
  request.row = in_quotes(message.message_id) + ", ";
  request.row += in_quotes(message.store_id) + ", ";
  request.row += std::to_string(message.event.sequence.value()) + ", ";
  request.row += std::to_string(message.redelivery) + ", ";
  request.row += as_sql(message.event.payload);
  sent_.push_back(std::move(request));
}

Answer FileBroker::store(const Request& request) {
  Answer answer{.session = session_, .request = request.number, .kind = Answer::Kind::stored};
  if (request.refused) {
    answer.kind = *request.refused;
    answer.detail = "the broker doesn't want it";
    if (answer.kind == Answer::Kind::misconfigured) {
      ++misfits;
      answer.detail = "there is no stream";
    }
    return answer;
  }
  const auto last = static_cast<std::uint64_t>(
      database_.integer("SELECT coalesce(max(sequence), 0) FROM stored" + of(request.partition)));
  if (request.expected && *request.expected != last) {
    answer.kind = Answer::Kind::stored_before;
    return answer;
  }
  answer.broker_sequence = last + 1;
  database_.run("INSERT INTO stored VALUES (" + std::to_string(request.partition) + ", " +
                std::to_string(last + 1) + ", " + request.row + ")");
  return answer;
}

void FileBroker::mend() {
  is_sealed = forbids_publishing = false;
  without_stream.clear();
}

void FileBroker::flush() {
  if (sent_.empty() || sink_ == nullptr || is_down) return;
  if (is_deaf || is_isolated) {
    sent_.clear();
    return when_silent();
  }
  if (forbids_publishing) {
    sent_.clear();
    ++misfits;
    return sink_->take(
        {.session = session_, .kind = Answer::Kind::misconfigured, .detail = "not allowed"});
  }
  std::vector<Answer> answers;
  database_.run("BEGIN IMMEDIATE");
  for (const Request& request : sent_) answers.push_back(store(request));
  database_.run("COMMIT");
  sent_.clear();
  if (after_storing) after_storing();
  for (Answer& answer : answers) sink_->take(std::move(answer));
}

void FileBroker::probe(std::uint64_t request) {
  if (sink_ == nullptr || is_down) return;
  if (is_deaf) return when_silent();
  sink_->take({.session = session_, .request = request, .kind = Answer::Kind::alive});
}

void FileBroker::read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
  if (sink_ == nullptr || is_down) return;
  if (is_deaf || is_isolated) return when_silent();
  Answer answer{.session = session_, .request = request, .kind = Answer::Kind::read_back};
  if (without_stream.contains(partition)) {
    ++misfits;
    answer.kind = Answer::Kind::misconfigured;
    answer.detail = "there is no stream";
    return sink_->take(std::move(answer));
  }
  const std::string where = of(partition.number);
  answer.first_sequence = static_cast<std::uint64_t>(
      database_.integer("SELECT coalesce(min(sequence), 1) FROM stored" + where));
  answer.last_sequence = static_cast<std::uint64_t>(
      database_.integer("SELECT coalesce(max(sequence), 0) FROM stored" + where));
  answer.found = stored(partition, from);
  sink_->take(std::move(answer));
}

std::vector<FoundMessage> FileBroker::stored(PartitionId partition, std::uint64_t from) {
  const std::string rows = "FROM stored" + of(partition.number) +
                           " AND sequence >= " + std::to_string(from) + " ORDER BY sequence";
  const auto sequences = database_.rows("SELECT sequence " + rows);
  const auto ids = database_.rows("SELECT id " + rows);
  const auto stores = database_.rows("SELECT store " + rows);
  const auto events = database_.rows("SELECT event " + rows);
  const auto redeliveries = database_.rows("SELECT redelivery " + rows);
  std::vector<FoundMessage> found;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    found.push_back({.broker_sequence = std::stoull(sequences[i]),
                     .message_id = ids[i],
                     .is_ours = !stores[i].empty(),
                     .store_id = stores[i],
                     .sequence = GlobalSequence{std::stoll(events[i])},
                     .redelivery = std::stoll(redeliveries[i])});
  }
  return found;
}

std::string FileBroker::log(PartitionId partition) {
  std::string text;
  for (const std::string& row : database_.rows(
           "SELECT event || CASE WHEN redelivery > 0 THEN 'r' || redelivery ELSE '' END FROM "
           "stored" +
           of(partition.number) + " ORDER BY sequence")) {
    if (!text.empty()) text += ' ';
    text += row;
  }
  return text;
}

std::vector<std::string> FileBroker::logs() {
  std::vector<std::string> all;
  for (const std::string& row :
       database_.rows("SELECT DISTINCT partition FROM stored ORDER BY partition")) {
    const PartitionId partition{std::stoi(row)};
    all.push_back(partition.label() + ": " + log(partition));
  }
  return all;
}

}  // namespace stela::test
