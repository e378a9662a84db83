#include "database/event_import.hpp"
#include "event_ids.hpp"
#include "event_lines.hpp"
#include "key_state.hpp"
#include "operations_sql/catalogue.hpp"
#include "operations_sql/transfer.hpp"
#include "schema_requirement.hpp"
#include "store_core.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela {
namespace {

using database::Connection;
namespace sql = operations::sql;

constexpr std::size_t import_batch_events = 1000;
constexpr std::size_t batch_bytes = std::size_t{4} * 1024 * 1024;

/// Numbered lines of text, each up to the longest possible line.
class Lines {
 public:
  explicit Lines(std::istream& in) noexcept : in_{in} {}

  /// False at the end. BadLine if the line is too long; StoreFailed if the input can't be read.
  bool next(std::string& line) {
    line.clear();
    ++number_;
    while (true) {
      in_.getline(chunk_.data(), static_cast<std::streamsize>(chunk_.size()));
      const auto got = static_cast<std::size_t>(in_.gcount());
      if (in_.bad()) throw StoreFailed{"reading line " + std::to_string(number_) + " failed"};
      // getline's count includes the line break that it removed.
      const bool has_break = !in_.fail() && !in_.eof();
      line.append(chunk_.data(), has_break ? got - 1 : got);
      if (has_break) return true;
      if (in_.eof()) {
        is_cut_off_ = true;
        return !line.empty();
      }
      if (line.size() > max_line_size) throw BadLine{"the line is longer than any event can be"};
      in_.clear();
    }
  }
  std::int64_t number() const noexcept { return number_; }
  /// The input ended without a line break.
  bool is_cut_off() const noexcept { return is_cut_off_; }

 private:
  std::istream& in_;
  std::int64_t number_ = 0;
  bool is_cut_off_ = false;
  std::array<char, std::size_t{64} * 1024> chunk_;
};

/// State lines are missing that the end of the export counts.
class RowsMissing : public BadLine {
 public:
  using BadLine::BadLine;
};

/// The first difference between an existing event and a line with its sequence.
std::string difference(const StoredEvent& stored, const ParsedEvent& line) {
  if (stored.id != line.id) {
    return "its id is " + stored.id.to_string() + " there and " + line.id.to_string() + " here";
  }
  if (stored.stream != line.stream || stored.version != line.version) {
    return "it is version " + std::to_string(stored.version.value()) + " of '" +
           stored.stream.name() + "' there";
  }
  if (stored.type() != line.kind.type || stored.schema_version() != line.kind.schema_version ||
      stored.publishes() != line.kind.publishes) {
    return "its type, schema_version or publishes differs";
  }
  if (stored.recorded_at != line.recorded_at) return "its recorded_at differs";
  if (stored.correlation != line.correlation || stored.causation_id != line.causation_id) {
    return "its correlation or causation differs";
  }
  if (stored.metadata != line.metadata) return "its metadata differs";
  if (stored.tags != join_tags(line.tags, line.stream)) return "its tags differ";
  return stored.payload != line.payload ? "its payload differs" : std::string{};
}

class Importer {
 public:
  Importer(Store& store, std::istream& in, const TransferOptions& options)
      : store_{store},
        lines_{in},
        options_{options},
        rows_{store_core(store).make_import()},
        last_{store.last_sequence()},
        known_until_{last_} {
    states_.insert(states_.end(), options.states.begin(), options.states.end());
  }

  ImportResult run(bool whole);

 private:
  void read_header(bool whole);
  void take_id(const Uuid& id);
  bool gather();
  void take(ParsedEvent event);
  void compare(const ParsedEvent& line);
  void check_id(const ParsedEvent& line);
  void write_batch();
  void check_participants(Connection& connection) const;
  bool is_at_end(Connection& connection) const;
  void read_states();
  /// The next state line. BadLine at the end of the input.
  ParsedState next_state();
  void load_append_ids();
  void load_states();
  void load_rows(Connection& connection);
  void check_end() const;
  void tell_progress() const;
  /// Stops at a bad line; earlier lines are imported first.
  void stop_at(std::int64_t number, std::string problem);
  void stop_at(std::int64_t number, std::string problem, std::string_view advice);
  [[noreturn]] void fail() const;

  Store& store_;
  Lines lines_;
  const TransferOptions& options_;
  KeyState keys_;
  std::vector<StateTransfer*> states_{&keys_};
  Embedding embedding_;
  ExportHeader header_;
  ImportResult result_;

  std::unique_ptr<EventImport> rows_;
  std::vector<ParsedEvent> batch_;
  /// The number of the batch's first line; the others follow it.
  std::int64_t batch_line_ = 0;
  std::size_t bytes_ = 0;
  /// The store's last event, as far as this import knows; and its last event at the beginning.
  GlobalSequence last_;
  GlobalSequence known_until_;
  /// Existing events, read in step with their lines.
  std::optional<EventRange> there_;
  std::optional<EventRange::Iterator> next_there_;
  GlobalSequence last_line_;
  /// The ids of all events in the store and the lines, once there is a new event.
  std::optional<EventIds> ids_;
  /// An entire store must follow, including its end.
  bool has_end_ = false;
  /// The state line after the last event, and the following ones of one table.
  std::string state_line_;
  ParsedState state_;
  std::int64_t bad_line_ = 0;
  std::string problem_;
  std::string_view advice_;
};

void Importer::stop_at(std::int64_t number, std::string problem, std::string_view advice) {
  bad_line_ = number;
  advice_ = advice;
  problem_ = std::move(problem);
}

void Importer::stop_at(std::int64_t number, std::string problem) {
  stop_at(number, std::move(problem),
          lines_.is_cut_off() && number == lines_.number()
              ? "the input ends here: if it is cut off, export again and import that (existing "
                "events are skipped); otherwise mend the line and import again"
              : "mend the line and import again");
}

void Importer::fail() const {
  throw UsageError{"line " + std::to_string(bad_line_) + ": " + problem_ + "; " +
                   (last_.value() == 0 ? std::string{"nothing is imported"}
                                       : "the store holds what comes before it, up to event " +
                                             std::to_string(last_.value())) +
                   "; " + std::string{advice_}};
}

void Importer::read_header(bool whole) {
  std::string line;
  try {
    if (!lines_.next(line)) throw BadLine{"there is nothing to import, not even a header"};
    header_ = parse_header(line);
    if (header_.codec != store_.conventions().codec) {
      throw UsageError{"these events have the codec '" + std::string{to_string(header_.codec)} +
                       "', and the store has '" +
                       std::string{to_string(store_.conventions().codec)} +
                       "'; import them into a store that is made with theirs"};
    }
    if (header_.store_id.is_nil()) return;
    has_end_ = true;
    if (!whole) throw UsageError{"this is the export of a whole store; import_store imports it"};
    take_id(header_.store_id);
  } catch (const BadLine& e) {
    stop_at(lines_.number(), e.what());
    fail();
  }
}

/// Consumers and the broker know a store by its id.
void Importer::take_id(const Uuid& id) {
  const std::string wanted = id.to_string();
  store_.database().write([&](Connection& connection) {
    std::string current;
    {
      auto row = connection.rows(sql::store_id{});
      if (row.step()) current = row.value();
    }
    if (current == wanted) return;
    if (!is_at_end(connection) || last_.value() > 0) {
      throw UsageError{
          "this store has events of its own, and the exported one is another; import "
          "it into an empty store"};
    }
    check_participants(connection);
    connection.run(
        sql::set_store_id{.id = wanted, .checksum = rows_->fact_checksum("store_id", wanted)});
  });
}

/// Fills the batch; false at the end of the input, and at an invalid line.
bool Importer::gather() {
  std::string line;
  while (batch_.size() < import_batch_events && bytes_ < batch_bytes) {
    try {
      if (!lines_.next(line)) return false;
      if (line.empty()) throw BadLine{"it's empty"};
      if (has_end_ && is_state(line)) {
        state_line_ = std::move(line);
        return false;
      }
      bytes_ += line.size();
      take(parse_line(line, header_, embedding_));
    } catch (const BadLine& e) {
      stop_at(lines_.number(), e.what());
      return false;
    }
  }
  return true;
}

void Importer::take(ParsedEvent event) {
  const GlobalSequence previous = last_line_.value() > 0
                                      ? last_line_
                                      : std::min(GlobalSequence{event.sequence.value() - 1}, last_);
  if (event.sequence.value() != previous.value() + 1) {
    throw BadLine{
        "event " + std::to_string(event.sequence.value()) +
        (last_line_.value() > 0 ? " follows event " : " can't follow the store's event ") +
        std::to_string(previous.value())};
  }
  if (event.sequence <= known_until_) {
    compare(event);
    ++result_.skipped;
  } else {
    check_id(event);
    if (batch_.empty()) batch_line_ = lines_.number();
    batch_.push_back(std::move(event));
  }
  last_line_ = GlobalSequence{previous.value() + 1};
}

void Importer::compare(const ParsedEvent& line) {
  if (!there_) {
    there_.emplace(store_.read_all({.from = line.sequence, .to = known_until_, .with_tags = true}));
    next_there_.emplace(there_->begin());
  } else {
    ++*next_there_;
  }
  if (*next_there_ == there_->end()) throw BadLine{"its event isn't in the store any more"};
  const std::string problem = difference(**next_there_, line);
  if (problem.empty()) return;
  throw BadLine{"the store has another event " + std::to_string(line.sequence.value()) + ": " +
                problem +
                " (if something was appended since an import began, import into a new database)"};
}

/// The tables have no index of ids: the first new event's line loads the existing ids.
void Importer::check_id(const ParsedEvent& line) {
  if (!ids_) {
    ids_.emplace();
    for (const StoredEvent& event : store_.read_all({.to = known_until_})) {
      ids_->add(event.id, event.sequence.value());
    }
  }
  const auto other = ids_->add(line.id, line.sequence.value());
  if (!other) return;
  throw BadLine{"event " + std::to_string(*other) + " has the same id, " + line.id.to_string()};
}

void Importer::check_participants(Connection& connection) const {
  auto participants = connection.rows(sql::participants{});
  while (participants.step()) {
    if (SchemaRequirement::parse(participants.name())) continue;
    // A tenant's mark is told nothing of events; these are of its own store.
    if (participants.name() == "tenant" && header_.store_id == store_.id()) continue;
    throw UsageError{"this database requires '" + std::string{participants.name()} +
                     "' to take part in every append, and an import tells it nothing; import "
                     "into a database that nothing is attached to yet"};
  }
}

bool Importer::is_at_end(Connection& connection) const {
  auto row = connection.rows(sql::last_sequence{});
  return row.step() && row.last() == last_.value();
}

/// One transaction: the entire batch, or the part before a line that doesn't fit.
void Importer::write_batch() {
  EventImport::Outcome outcome;
  bool is_alone = true;
  store_.database().write([&](Connection& connection) {
    store_.database().forget_caches();
    check_participants(connection);
    is_alone = is_at_end(connection);
    if (!is_alone) return;
    rows_->settle_tag_types(connection, header_.tag_types);
    outcome = rows_->store(connection, batch_);
  });
  const auto stored = static_cast<std::int64_t>(outcome.stored);
  if (!is_alone) {
    stop_at(batch_line_, "another process appended to the store during the import",
            "the line is correct: import again while no other process imports or appends; "
            "existing events are skipped");
  } else if (!outcome.problem.empty()) {
    stop_at(batch_line_ + stored, std::move(outcome.problem));
  }
  last_ = GlobalSequence{last_.value() + stored};
  result_.imported += stored;
  batch_.clear();
}

void Importer::read_states() try {
  state_ = state_line_.empty() ? next_state() : parse_state(state_line_, embedding_);
  load_append_ids();
  load_states();
  check_end();
} catch (const RowsMissing& e) {
  stop_at(lines_.number(), e.what(), "export again and import that; existing events are skipped");
} catch (const BadLine& e) {
  stop_at(lines_.number(), e.what());
} catch (const codec::DecodeError& e) {
  stop_at(lines_.number(), e.what());
}

ParsedState Importer::next_state() {
  if (!lines_.next(state_line_)) {
    throw BadLine{"the end of the export is missing, and its states weren't imported"};
  }
  return parse_state(state_line_, embedding_);
}

void Importer::load_append_ids() {
  while (state_.table == "append_ids") {
    std::vector<std::string> rows;
    for (; state_.table == "append_ids" && rows.size() < import_batch_events;
         state_ = next_state()) {
      rows.push_back(std::move(state_.row));
    }
    const auto load = [&](Connection& connection) {
      for (const std::string& text : rows) {
        json::Reader row{text};
        row.open_object();
        const auto number = [&](std::string_view name) {
          return row.select(name) ? row.get_int64() : 0;
        };
        const std::string id{row.select("append_id") ? row.get_string() : std::string_view{}};
        const std::int64_t first = number("first_sequence");
        const std::int64_t last = number("last_sequence");
        connection.run(sql::load_append_id{
            .append_id = id,
            .first_sequence = first,
            .last_sequence = last,
            .checksum = rows_->append_id_checksum(id, first, last),
            .used_at = Timestamp{std::chrono::microseconds{number("used_at")}}});
      }
    };
    store_.database().write(load);
    result_.append_ids += static_cast<std::int64_t>(rows.size());
    tell_progress();
  }
}

void Importer::load_states() {
  if (state_.table == end_of_states) return;
  for (StateTransfer* const state : states_) state->prepare(store_.database());
  store_.database().write([&](Connection& connection) {
    store_.database().forget_caches();
    load_rows(connection);
    check_end();
    for (StateTransfer* const state : states_) state->finish(connection);
  });
}

void Importer::load_rows(Connection& connection) {
  while (state_.table != end_of_states) {
    const std::string table = state_.table;
    const auto found = std::find_if(states_.begin(), states_.end(), [&](const StateTransfer* one) {
      return table.starts_with(one->prefix());
    });
    if (found == states_.end()) throw BadLine{"'" + table + "' can't be imported here"};
    std::string rows;
    std::size_t count = 0;
    for (; state_.table == table && count < import_batch_events; state_ = next_state(), ++count) {
      rows.append(count == 0 ? "[" : ",").append(state_.row);
    }
    (*found)->load(connection, table, rows + "]");
    result_.rows += static_cast<std::int64_t>(count);
    tell_progress();
  }
}

void Importer::check_end() const {
  json::Reader row{state_.row};
  row.open_object();
  if (!row.select("last_sequence") || row.get_int64() != last_.value()) {
    throw BadLine{"the export ends at another event than " + std::to_string(last_.value())};
  }
  // Older exports don't count the rows.
  if (!row.select("rows")) return;
  const std::int64_t wanted = row.get_int64();
  const std::int64_t found = result_.append_ids + result_.rows;
  if (found == wanted) return;
  throw RowsMissing{"the export has " + std::to_string(wanted) + " lines of states, and " +
                    std::to_string(found) + " are here"};
}

void Importer::tell_progress() const {
  if (!options_.progress) return;
  options_.progress(
      {"import", result_.imported + result_.skipped + result_.append_ids + result_.rows, 0});
}

ImportResult Importer::run(bool whole) {
  read_header(whole);
  bool more = true;
  while (more && bad_line_ == 0) {
    if (options_.stop.stop_requested()) {
      result_.finished = false;
      break;
    }
    more = gather();
    bytes_ = 0;
    if (!batch_.empty()) write_batch();
    tell_progress();
  }
  result_.last = last_;
  if (bad_line_ == 0 && result_.finished && has_end_) read_states();
  if (bad_line_ != 0) fail();
  return result_;
}

}  // namespace

ImportResult import_events(Store& store, std::istream& in, const TransferOptions& options) {
  return Importer{store, in, options}.run(false);
}

ImportResult import_store(Store& store, std::istream& in, const TransferOptions& options) {
  return Importer{store, in, options}.run(true);
}

}  // namespace stela
