// events append.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/description.hpp"
#include "event_text.hpp"
#include "store_session.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/json_reader.hpp>

#include <array>
#include <iostream>

namespace stela::tool {
namespace {

constexpr int largest_version = std::numeric_limits<std::int32_t>::max();

/// One event as it was typed.
struct Draft {
  std::string stream = {};
  std::string type = {};
  int version = 1;
  bool publish = false;
  ExpectedVersion expected = ExpectedVersion::any();
  std::string data = {};
  Context context = {};
};

/// An append, after its commit.
struct Committed {
  GlobalSequence sequence;
  EventId id;
  StreamVersion version;
};

EventId parse_id(std::string_view text, std::string_view what) {
  const auto id = Uuid::parse(text);
  if (!id) throw Misuse{std::string{what} + " is an event's id, a UUID"};
  return *id;
}

/// The fields of a line of --stdin, beside those that flags set for all.
Draft parse_line(const std::string& line, const Draft& defaults) {
  Draft draft = defaults;
  bool has_data = false;
  json::Reader reader{line};
  reader.open_object();
  std::string name;
  while (reader.next_member(name)) {
    if (name == "stream") {
      draft.stream = reader.get_string();
    } else if (name == "type") {
      draft.type = reader.get_string();
    } else if (name == "version") {
      const std::int64_t version = reader.get_int64();
      if (version < 1 || version > largest_version) reader.fail("isn't a version");
      draft.version = static_cast<int>(version);
    } else if (name == "publish") {
      draft.publish = reader.get_bool();
    } else if (name == "expected") {
      draft.expected = ExpectedVersion::exactly(StreamVersion{reader.get_int64()});
    } else if (name == "data") {
      draft.data = reader.get_raw();
      has_data = true;
    } else if (name == "correlation") {
      draft.context.correlation_id = reader.get_string();
    } else if (name == "causation") {
      draft.context.causation_id = parse_id(reader.get_string(), "causation");
    } else if (name == "actor") {
      draft.context.actor = reader.get_string();
    } else {
      constexpr std::array<std::string_view, 9> known{"stream",      "type",      "version",
                                                      "publish",     "expected",  "data",
                                                      "correlation", "causation", "actor"};
      throw Misuse{"there is no field '" + in_one_line(name) + "'" + did_you_mean(name, known)};
    }
  }
  reader.close();
  reader.finish();
  if (!has_data && draft.data.empty()) throw Misuse{"the field data is missing"};
  if (draft.stream.empty()) throw Misuse{"the field stream is missing, and there is no --stream"};
  if (draft.type.empty()) throw Misuse{"the field type is missing, and there is no --type"};
  return draft;
}

/// Events as lines of JSON, once they are committed.
class Appender {
 public:
  Appender(StoreSession& session, Output& out) : store_{session.store()}, out_{out} {
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

  /// All of them in one transaction; prints each once they are committed.
  void append(std::span<const Draft> drafts) {
    committed_.clear();
    try {
      commit(drafts);
    } catch (const ParticipantMissing& e) {
      throw ParticipantMissing{std::string{e.what()} +
                               "; append with the tool that is built into its application, or say "
                               "--leave-behind"};
    }
    for (const Committed& event : committed_) {
      out_.json(to_json(
          {{"sequence", event.sequence}, {"id", event.id}, {"stream_version", event.version}}));
      last_ = event.sequence;
    }
    out_.flush();
  }

  GlobalSequence last() const noexcept { return last_; }

 private:
  void commit(std::span<const Draft> drafts) {
    if (drafts.size() == 1) return append_to(store_, drafts.front());
    store_.transact([&](Transaction& transaction) {
      for (const Draft& draft : drafts) append_to(transaction, draft);
    });
  }

  static void append_to(EventLog& log, const Draft& draft) {
    const StreamId stream = StreamId::parse(draft.stream);
    const std::string payload = minified(draft.data);
    if (payload.front() != '{') throw Misuse{"an event's data is a JSON object"};
    const NewEvent event{draft.type, draft.version, draft.publish, payload};
    const StreamAppend append{stream, draft.expected, {&event, 1}};
    log.append({.streams = {&append, 1}, .context = draft.context});
  }

  Store& store_;
  Output& out_;
  Subscription commits_;
  std::vector<Committed> committed_;
  GlobalSequence last_;
};

/// Which lines of stdin are in, for the sentence that says so.
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

  /// The last line whose event, and all before it, are committed.
  std::int64_t committed = 0;
};

void append_lines(Appender& appender, const Draft& defaults, std::int64_t batch) {
  std::ios::sync_with_stdio(false);
  LineReport report;
  std::vector<Draft> drafts;
  std::string line;
  std::int64_t number = 0;
  const auto commit = [&] {
    if (!drafts.empty()) appender.append(drafts);
    drafts.clear();
    report.committed = number;
  };
  try {
    while (std::getline(std::cin, line)) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      drafts.push_back(parse_line(line, defaults));
      if (static_cast<std::int64_t>(drafts.size()) == batch) commit();
    }
    commit();
  } catch (const codec::DecodeError& e) {
    report.fail(number, e.what(), failed, appender.last());
  } catch (const Misuse& e) {
    report.fail(number, e.what(), failed, appender.last());
  } catch (const Error& e) {
    report.fail(number, e.what(), failed, appender.last());
  }
}

ExpectedVersion expected_of(const Arguments& arguments) {
  const auto version = arguments.integer("--expected", {0, largest});
  if (!version) return ExpectedVersion::any();
  return ExpectedVersion::exactly(StreamVersion{*version});
}

int append(Invocation& call) {
  const Arguments& given = call.arguments;
  const bool from_stdin = given.has("--stdin");
  Draft draft{
      .version = static_cast<int>(given.integer("--version", {1, largest_version}).value_or(1)),
      .publish = given.has("--publish"),
      .expected = expected_of(given)};
  draft.stream = from_stdin ? given.text("--stream").value_or("") : given.required("--stream");
  draft.type = from_stdin ? given.text("--type").value_or("") : given.required("--type");
  draft.context.correlation_id = given.text("--correlation").value_or("");
  draft.context.actor = given.text("--actor").value_or("");
  if (const auto cause = given.text("--causation")) {
    draft.context.causation_id = parse_id(*cause, "--causation");
  }
  const std::int64_t batch = given.integer("--batch", {1, 100'000}).value_or(1);
  if (from_stdin == given.has("--data")) {
    throw Misuse{"either --data or --stdin says what the event carries"};
  }
  if (given.has("--batch") && !from_stdin) throw Misuse{"--batch goes with --stdin"};
  if (!from_stdin) draft.data = given.required("--data");
  StoreSession session{call};
  session.prepare_to_append();
  if (given.has("--leave-behind")) {
    for (const std::string& name : session.leave_unknown_behind()) {
      call.out.note("The projector '" + in_one_line(name) +
                    "' is detached; the next process that registers it catches up first.");
    }
  }
  Appender appender{session, call.out};
  if (from_stdin) {
    append_lines(appender, draft, batch);
    return done;
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
          "optionally \"version\", \"expected\", \"publish\", \"correlation\", \"causation\" and "
          "\"actor\"; flags are defaults for lines without them. Each line is a transaction, or "
          "each --batch N lines. Inline projectors that this tool doesn't know refuse appends; "
          "--leave-behind detaches them: restart the processes that have them, and they catch up.",
      .options = {db_option,
                  {"--stream", "ID", "the stream: category-key"},
                  {"--type", "NAME", "the event type"},
                  {"--version", "N", "its payload's version (default 1)"},
                  {"--expected", "N", "expected version of the stream; 0: a new stream"},
                  {"--publish", "", "mark the event to be published"},
                  {"--data", "JSON", "the payload, a JSON object"},
                  {"--stdin", "", "read events from stdin, one JSON object per line"},
                  {"--batch", "N", "with --stdin: events per transaction"},
                  {"--correlation", "ID", "correlation id"},
                  {"--causation", "ID", "causation id"},
                  {"--actor", "NAME", "the user or service that caused it"},
                  {"--leave-behind", "", "skip inline projectors that only the application knows"}},
      .examples = {{"one event, to be published",
                    "events append --stream order-1001 --type order.placed --publish --data "
                    "'{\"total_cents\":4200}'"},
                   {"many events, 1000 per transaction",
                    "events append --stdin --batch 1000 < events.jsonl"}},
      .run = append};
}

}  // namespace stela::tool
