// privacy export: everything that the store has on one person.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/privacy.hpp"
#include "database/partial_file.hpp"
#include "description/description.hpp"
#include "event_text.hpp"
#include "key_session.hpp"
#include "store_session.hpp"

#include <stela/framework/codec/detail/sealed_value.hpp>
#include <stela/framework/error.hpp>

#include <filesystem>

namespace stela::tool {
namespace {

/// Opens only what is sealed for one subject, because an event may be about others as well.
/// Threads: as the keys.
class KeysOfOne final : public Keyring {
 public:
  KeysOfOne(Keyring& keys, std::string subject) : keys_{keys}, subject_{std::move(subject)} {}

  std::shared_ptr<const SubjectKey> key_of(const Subject&) override { refuse(); }
  std::shared_ptr<const SubjectKey> find(const KeyId& id) override {
    auto key = keys_.find(id);
    return key != nullptr && key->subject.name == subject_ ? key : nullptr;
  }
  std::vector<KeyInfo> keys_of(std::string_view subject) override { return keys_.keys_of(subject); }
  std::size_t destroy(std::span<const KeyId>) override { refuse(); }
  void allow_again(std::string_view) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw UsageError{"an export only reads"}; }

  Keyring& keys_;
  const std::string subject_;
};

std::string exported_line(const StoredEvent& event, Keyring& keys) {
  const std::string opened =
      codec::reveal(event.payload, {.keys = &keys, .place = codec::Place::of_event(event.id)});
  return to_json({{"sequence", event.sequence},
                  {"stream", event.stream.name()},
                  {"stream_version", event.version},
                  {"id", event.id},
                  {"type", event.type()},
                  {"schema_version", event.schema_version()},
                  {"recorded_at", event.recorded_at},
                  {"payload", Json{minified(opened)}}});
}

/// Lines on stdout, or in a file that only the user may read. Threads: one at a time.
class ExportedLines {
 public:
  ExportedLines(Output& out, const std::optional<std::string>& path) : out_{out} {
    if (!path) return;
    if (std::filesystem::exists(*path)) refuse(*path);
    file_.emplace(*path, 0600);
    path_ = *path;
  }

  void add(const std::string& line) {
    if (!file_) return out_.json(line);
    text_.append(line).append("\n");
    if (text_.size() >= std::size_t{64} * 1024) write();
  }
  void finish() {
    if (!file_) return;
    write();
    if (!file_->publish()) refuse(path_);
  }

 private:
  [[noreturn]] static void refuse(const std::string& path) {
    throw Exit{failed, "'" + path + "' already exists; choose another name, or remove it"};
  }
  void write() {
    file_->write(text_);
    text_.clear();
  }

  Output& out_;
  std::optional<database::PartialFile> file_;
  std::string path_ = {};
  std::string text_ = {};
};

int export_subject(Invocation& call) {
  const StreamId subject = StreamId::parse(call.arguments.operands().front());
  const Signals signals{call};
  KeySession session{call, false};
  // Opens the store with its keys, so that recorded erasures take effect before anything is opened.
  StoreSession database{call, {.keys = &session.keys()}};
  const std::vector<KeyInfo> found = session.keys().keys_of(subject.name());
  Store& store = database.store();
  if (store.conventions().codec != Codec::json) {
    throw Exit{failed,
               "the payloads of this store are in portable binary, which only its application can "
               "read: export with it"};
  }
  ExportedLines lines{call.out, call.arguments.text("--to")};
  note_privacy(call, database, "exports", counted(std::ssize(found), "key"), ids_in_words(found));
  const SealMarks marks{Codec::json, found};
  KeysOfOne keys{session.keys(), subject.name()};
  ProgressBar bar{call.out, "events"};
  const GlobalSequence last = store.last_sequence();
  std::int64_t events = 0;
  for (const StoredEvent& event : store.read_all({.to = last})) {
    if (signals.stopped()) return interrupted;
    if (event.sequence.value() % 1024 == 0) {
      bar.show("events", event.sequence.value(), last.value());
    }
    if (event.stream != subject && !marks.are_in(event.payload)) continue;
    lines.add(exported_line(event, keys));
    ++events;
  }
  bar.clear();
  lines.finish();
  call.out.note(counted(events, "event") + " exported. Snapshots and timers, which repeat what " +
                "events say, and read models aren't among them.");
  return done;
}

}  // namespace

Command privacy_export_command() {
  return {.path = "privacy export",
          .summary = "Export all events about a person, opened",
          .about =
              "Each event of the person's own stream, and each that has a value sealed for the "
              "person, as a line of JSON. What is sealed for others in them stays sealed. "
              "Reads the whole store.",
          .operands = {subject_operand_of_keys},
          .options = {db_option,
                      keys_option,
                      master_option,
                      erasures_option,
                      {"--to", "FILE", "a new file, which only this user may read"}},
          .examples = {{"for the person", "privacy export guest-m1 --to m1.jsonl"}},
          .run = export_subject};
}

}  // namespace stela::tool
