// events append.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/append_lines.hpp"
#include "commands/event_selection.hpp"
#include "description/description.hpp"
#include "event_text.hpp"
#include "store_session.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <deque>
#include <iostream>
#include <set>

namespace stela::tool {
namespace {

/// A committed append.
struct Committed {
  GlobalSequence sequence;
  EventId id;
  StreamVersion version;
};

std::string payload_of(const Draft& draft) {
  std::string payload = minified(draft.data);
  if (payload.front() != '{') throw Misuse{"an event's data is a JSON object"};
  return payload;
}

/// A drafted append as a request, with the data that it refers to.
class BatchRequest {
 public:
  explicit BatchRequest(const DraftedAppend& append) {
    for (const Draft& draft : append.events) add(draft, append);
    for (const auto& [name, version] : append.expected) {
      const StreamId& stream = streams_.emplace_back(StreamId::parse(name));
      if (met_.insert(name).second) appends_.push_back({stream, version, {}});
    }
    // Spans are taken only after the list of events is complete.
    for (std::size_t i = 0, event = 0; i < appends_.size(); ++i) {
      appends_[i].events = std::span{events_}.subspan(event, counts_.size() > i ? counts_[i] : 0);
      event += appends_[i].events.size();
    }
  }
  BatchRequest(const BatchRequest&) = delete;
  BatchRequest& operator=(const BatchRequest&) = delete;

  std::span<const StreamAppend> streams() const noexcept { return appends_; }

 private:
  void add(const Draft& draft, const DraftedAppend& append) {
    events_.push_back({.type = draft.type,
                       .schema_version = draft.version,
                       .publishes = draft.publish,
                       .payload = payloads_.emplace_back(payload_of(draft)),
                       .tags = draft.tags,
                       .id = draft.id,
                       .context = &draft.context});
    if (!appends_.empty() && appends_.back().stream.name() == draft.stream) {
      ++counts_.back();
      return;
    }
    const StreamId& stream = streams_.emplace_back(StreamId::parse(draft.stream));
    const auto expected = append.expected.find(draft.stream);
    const bool is_first = met_.insert(draft.stream).second;
    appends_.push_back(
        {stream,
         is_first && expected != append.expected.end() ? expected->second : ExpectedVersion::any(),
         {}});
    counts_.push_back(1);
  }

  std::deque<std::string> payloads_;
  std::deque<StreamId> streams_;
  std::vector<NewEvent> events_;
  std::vector<StreamAppend> appends_;
  std::vector<std::size_t> counts_;
  std::set<std::string> met_;
};

/// Misuse if the application's own types couldn't read the event.
void require_readable(const App& app, const Draft& draft) {
  const StreamId stream = StreamId::parse(draft.stream);
  const App::EventReader* const read = app.event_reader_of(stream.category());
  if (read == nullptr) return;
  const EventKind kind{
      .type = draft.type, .schema_version = draft.version, .publishes = draft.publish};
  const std::string payload = payload_of(draft);
  const StoredEvent drafted{.sequence = {},
                            .stream = stream,
                            .version = {},
                            .kind = kind,
                            .id = draft.id,
                            .recorded_at = {},
                            .correlation = {},
                            .causation_id = {},
                            .metadata = {},
                            .published_before = {},
                            .payload = payload};
  try {
    (*read)(Codec::json, drafted);
  } catch (const Error& e) {
    throw Misuse{draft.type + " v" + std::to_string(draft.version) + " of " + draft.stream +
                 " can't be read by this program: " + e.what() +
                 "; correct it, or append it all the same with --unchecked"};
  }
}

/// Prints events as lines of JSON once they are committed.
class Appender {
 public:
  /// The types of `checks` check each event, unless it is null.
  Appender(StoreSession& session, const App* checks, Output& out)
      : store_{session.store()}, checks_{checks}, out_{out} {
    if (store_.conventions().codec != Codec::json) {
      throw Exit{failed,
                 "this database keeps payloads as portable binary, which only its application can "
                 "write"};
    }
    commits_ = store_.on_commit([this](const CommitNotice& notice) {
      for (const StoredEvent& event : notice.events) {
        committed_.push_back({event.sequence, event.id, event.version});
      }
    });
  }

  /// Misuse if the application's own types couldn't read one of the events.
  void check(std::span<const Draft> drafts) const {
    if (checks_ == nullptr) return;
    for (const Draft& draft : drafts) require_readable(*checks_, draft);
  }

  /// Appends all events in one transaction, or throws.
  void append(std::span<const Draft> drafts) {
    check(drafts);
    const auto all = [&](const Draft& draft, EventLog& log) { append_to(log, draft); };
    commit(drafts, all);
    for (const Committed& event : committed_) print(event);
    out_.flush();
  }

  /// As `append`, but skips events that conflict. Prints the result of each; false if there was a
  /// conflict. With `stops`, no event after the first conflict is appended.
  bool append_lines(std::span<const Draft> drafts, bool stops) {
    std::vector<std::string> conflicts;
    bool has_conflict = false;
    const auto each = [&](const Draft& draft, EventLog& log) {
      if (stops && has_conflict) return;
      std::string& conflict = conflicts.emplace_back();
      try {
        append_to(log, draft);
      } catch (const ConcurrencyConflict& e) {
        conflict = conflict_of(e, draft.expected);
        has_conflict = true;
      }
    };
    commit(drafts, each);
    auto event = committed_.begin();
    for (const std::string& conflict : conflicts) {
      if (!conflict.empty()) {
        out_.json(conflict);
      } else {
        print(*event++);
      }
    }
    out_.flush();
    return !has_conflict;
  }

  /// Prints the result; false if there was a conflict.
  bool append(const DraftedAppend& drafted) {
    check(drafted.events);
    const BatchRequest request{drafted};
    try {
      const AppendResult result =
          store_.append({.streams = request.streams(),
                         .append_id = drafted.id,
                         .condition = drafted.condition ? &*drafted.condition : nullptr});
      std::string line = "{\"first\":" + std::to_string(result.first.value()) +
                         ",\"last\":" + std::to_string(result.last.value());
      print(line + (result.repeated ? ",\"repeated\":true}" : "}"));
      last_ = std::max(last_, result.last);
      return true;
    } catch (const ConditionConflict& e) {
      print(conflict_of(e, *drafted.condition));
    } catch (const ConcurrencyConflict& e) {
      const auto expected = drafted.expected.find(e.stream());
      print(conflict_of(
          e, expected != drafted.expected.end() ? expected->second : ExpectedVersion::none()));
    }
    return false;
  }

  GlobalSequence last() const noexcept { return last_; }

 private:
  static std::string conflict_of(const ConcurrencyConflict& conflict, ExpectedVersion expected) {
    std::string stream;
    json::append_string(stream, conflict.stream());
    const StreamVersion version = expected.version().value_or(StreamVersion{});
    return "{\"conflict\":{\"stream\":" + stream +
           ",\"expected\":" + std::to_string(version.value()) +
           ",\"stream_version\":" + std::to_string(conflict.actual().value()) + "}}";
  }
  static std::string conflict_of(const ConditionConflict& conflict,
                                 const AppendCondition& condition) {
    const std::string position = std::to_string(conflict.position().value());
    if (conflict.cause() == ConditionConflict::Cause::missing_position) {
      return "{\"conflict\":{\"after\":" + std::to_string(condition.after->value()) +
             ",\"head\":" + position + "}}";
    }
    return "{\"conflict\":{\"position\":" + position +
           ",\"query\":" + std::to_string(conflict.item()) + "}}";
  }

  void print(const std::string& line) {
    out_.json(line);
    out_.flush();
  }

  void print(const Committed& event) {
    out_.json(to_json(
        {{"sequence", event.sequence}, {"id", event.id}, {"stream_version", event.version}}));
    last_ = event.sequence;
  }

  /// Calls `each` for each draft, in one transaction.
  void commit(std::span<const Draft> drafts, FunctionRef<void(const Draft&, EventLog&)> each) {
    committed_.clear();
    try {
      if (drafts.size() == 1) return each(drafts.front(), store_);
      store_.transact([&](Transaction& transaction) {
        for (const Draft& draft : drafts) each(draft, transaction);
      });
    } catch (const ParticipantMissing& e) {
      throw ParticipantMissing{std::string{e.what()} +
                               "; append with the tool that is built into its application, or say "
                               "--leave-behind"};
    }
  }

  static void append_to(EventLog& log, const Draft& draft) {
    const StreamId stream = StreamId::parse(draft.stream);
    const std::string payload = payload_of(draft);
    const NewEvent event{.type = draft.type,
                         .schema_version = draft.version,
                         .publishes = draft.publish,
                         .payload = payload,
                         .tags = draft.tags};
    const StreamAppend append{stream, draft.expected, {&event, 1}};
    log.append({.streams = {&append, 1}, .context = draft.context});
  }

  Store& store_;
  const App* const checks_;
  Output& out_;
  Subscription commits_;
  std::vector<Committed> committed_;
  GlobalSequence last_;
};

/// The lines of stdin that are committed, for the final message.
class LineReport {
 public:
  [[noreturn]] void fail(std::int64_t line, const std::string& problem, ExitCode code,
                         GlobalSequence last) const {
    std::string text = "line " + std::to_string(line) + ": " + problem + "; ";
    if (committed == 0) {
      text += "nothing was committed";
    } else {
      text += "lines 1 to " + std::to_string(committed) + " are committed, up to sequence " +
              std::to_string(last.value()) + "; go on from line " + std::to_string(committed + 1);
    }
    throw Exit{code, text};
  }

  /// The last line up to which everything is committed.
  std::int64_t committed = 0;
};

/// Appends line by line. Returns the exit code.
class LineAppender {
 public:
  struct Options {
    std::int64_t batch = 1;
    bool stops_on_conflict = false;
  };
  LineAppender(Appender& appender, const Draft& defaults, const Options& options)
      : appender_{appender}, defaults_{defaults}, options_{options} {}

  int run() {
    std::ios::sync_with_stdio(false);
    std::string line;
    try {
      while (std::getline(std::cin, line)) {
        ++number_;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        if (!take(line)) return conflict;
      }
      commit(number_);
    } catch (const codec::DecodeError& e) {
      report_.fail(number_, e.what(), failed, appender_.last());
    } catch (const Misuse& e) {
      report_.fail(number_, e.what(), failed, appender_.last());
    } catch (const Error& e) {
      report_.fail(number_, e.what(), failed, appender_.last());
    }
    return has_conflict_ ? conflict : done;
  }

 private:
  /// False if it stops here.
  bool take(const std::string& line) {
    if (!has_events(line)) {
      drafts_.push_back(parse_event_line(line, defaults_));
      appender_.check({&drafts_.back(), 1});
      return static_cast<std::int64_t>(drafts_.size()) < options_.batch || commit(number_);
    }
    const DraftedAppend drafted = parse_append_line(line, defaults_);
    // Commits the earlier lines first, although more lines could have joined them.
    if (!commit(number_ - 1)) return false;
    const bool holds = appender_.append(drafted);
    report_.committed = number_;
    has_conflict_ = has_conflict_ || !holds;
    return holds || !options_.stops_on_conflict;
  }

  /// Commits the collected lines, up to line `last`. False if it stops here.
  bool commit(std::int64_t last) {
    if (drafts_.empty()) return true;
    const bool hold = appender_.append_lines(drafts_, options_.stops_on_conflict);
    drafts_.clear();
    report_.committed = last;
    has_conflict_ = has_conflict_ || !hold;
    return hold || !options_.stops_on_conflict;
  }

  Appender& appender_;
  const Draft& defaults_;
  const Options options_;
  LineReport report_;
  std::vector<Draft> drafts_;
  std::int64_t number_ = 0;
  bool has_conflict_ = false;
};

std::vector<Tag> tags_of(const Arguments& arguments) {
  std::vector<Tag> tags;
  for (const std::string& tag : arguments.all("--tag")) tags.push_back(Tag::parse(tag));
  return tags;
}

ExpectedVersion expected_of(const Arguments& arguments) {
  const auto version = arguments.integer("--expected", {0, largest});
  if (!version) return ExpectedVersion::any();
  return ExpectedVersion::exactly(StreamVersion{*version});
}

int append(Invocation& call) {
  const Arguments& given = call.arguments;
  const bool from_stdin = given.has("--stdin");
  Draft draft{.version = static_cast<int>(
                  given.integer("--version", {1, largest_schema_version}).value_or(1)),
              .publish = given.has("--publish"),
              .expected = expected_of(given)};
  draft.stream = from_stdin ? given.text("--stream").value_or("") : given.required("--stream");
  draft.type = from_stdin ? given.text("--type").value_or("") : given.required("--type");
  draft.context.correlation_id = given.text("--correlation").value_or("");
  draft.context.actor = given.text("--actor").value_or("");
  if (const auto cause = given.text("--causation")) {
    draft.context.causation_id = parse_event_id(*cause, "--causation");
  }
  const std::int64_t batch = given.integer("--batch", {1, 100'000}).value_or(1);
  if (from_stdin == given.has("--data")) {
    throw Misuse{"either --data or --stdin says what the event carries"};
  }
  for (const std::string_view option : {"--batch", "--stop-on-conflict"}) {
    if (given.has(option) && !from_stdin) {
      throw Misuse{std::string{option} + " goes with --stdin"};
    }
  }
  draft.tags = tags_of(given);
  if (!from_stdin) draft.data = given.required("--data");
  StoreSession session{call};
  session.prepare_to_append();
  if (given.has("--leave-behind")) {
    for (const std::string& name : session.leave_unknown_behind()) {
      call.out.note("The projector '" + in_one_line(name) +
                    "' is detached; the next process that registers it catches up first.");
    }
  }
  Appender appender{session, given.has("--unchecked") ? nullptr : &call.app, call.out};
  if (from_stdin) {
    return LineAppender{appender, draft, {batch, given.has("--stop-on-conflict")}}.run();
  }
  try {
    appender.append({&draft, 1});
  } catch (const codec::DecodeError& e) {
    throw Misuse{std::string{"--data isn't JSON: "} + e.what()};
  }
  return done;
}

}  // namespace

Command append_command() {
  return {
      .path = "events append",
      .summary = "Append events and print their sequences",
      .about =
          "With --stdin, each line is one event: {\"stream\":…,\"type\":…,\"data\":{…}}, and "
          "optionally \"schema_version\", \"expected\", \"publish\", \"tags\", \"correlation_id\", "
          "\"causation_id\" and \"actor\"; flags are defaults for lines without them. Each line is "
          "a "
          "transaction, or each --batch N lines, without those that conflict. Or a line is an "
          "append of several events: "
          "{\"events\":[…],\"condition\":{\"query\":[{\"types\":[…],\"tags\":[…]}],\"after\":N},"
          "\"id\":…,\"expected\":{\"STREAM\":N}}, all or nothing, and prints "
          "{\"first\":N,\"last\":N}, or {\"conflict\":{…}}: with \"position\" and \"query\", the "
          "first "
          "event that matches and the item that it matches; with \"stream\", \"expected\" and "
          "\"version\"; or with \"after\" and \"head\", if the store ends before the condition's "
          "position. A conflict doesn't stop the lines after "
          "it; if there was one, the exit code is 5. Inline projectors that this tool doesn't know "
          "refuse appends; "
          "--leave-behind detaches them: restart the processes that have them, and they catch up.",
      .options = {db_option,
                  {"--stream", "ID", "the stream: category-key"},
                  {"--type", "NAME", "the event type"},
                  {"--version", "N", "its payload's version (default 1)"},
                  {"--expected", "N", "expected version of the stream; 0: a new stream"},
                  {"--publish", "", "mark the event to be published"},
                  {"--data", "JSON", "the payload, a JSON object"},
                  {"--stdin", "", "read events from stdin, one JSON object per line"},
                  {"--tag", "TAG", "a tag beside that of the stream", "", true},
                  {"--batch", "N", "with --stdin: events per transaction"},
                  {"--stop-on-conflict", "", "with --stdin: end at the first conflict"},
                  {"--correlation", "ID", "correlation id"},
                  {"--causation", "ID", "causation id"},
                  {"--actor", "NAME", "the user or service that caused it"},
                  {"--unchecked", "", "also what the application's own types can't read"},
                  {"--leave-behind", "", "skip inline projectors that only the application knows"}},
      .examples = {{"one event, to be published",
                    "events append --stream order-1001 --type order.placed --publish --data "
                    "'{\"total_cents\":4200}'"},
                   {"many events, 1000 per transaction",
                    "events append --stdin --batch 1000 < events.jsonl"}},
      .run = append};
}

}  // namespace stela::tool
