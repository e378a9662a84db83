// doctor's examination of personal data: where its keys are, and where no personal data should be.
#include "cli/text.hpp"
#include "commands/doctor.hpp"
#include "key_session.hpp"

#include <stela/eventstore/detail/erasures.hpp>
#include <stela/eventstore/detail/postgres_status.hpp>
#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace stela::tool {
namespace {

/// The number of newest events to examine.
constexpr std::int64_t events_looked_at = 2'000;
constexpr std::chrono::days long_without_rotation{7};
constexpr std::size_t keys_at_once_of_doctor = 1'000;

bool is_of_address(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view{"._%+-"}.find(c) != std::string_view::npos;
}

/// True for an e-mail address, "ann@example.org": a name, and a domain with a dot.
bool has_address(std::string_view text) {
  for (std::size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_of_address);
    const std::string_view domain = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    const std::size_t dot = domain.find('.');
    if (at > 0 && is_of_address(text[at - 1]) && dot != std::string_view::npos && dot > 0 &&
        dot + 1 < domain.size()) {
      return true;
    }
  }
  return false;
}

void look_at_names(Examination& examination, Store& store) try {
  for (const StoredEvent& event : store.read_all(
           {.with_tags = true, .direction = Direction::backward, .limit = events_looked_at})) {
    const char* const where = has_address(event.stream.name()) ? "the name of its stream"
                              : has_address(event.tags)        ? "its tags"
                              : has_address(event.metadata)    ? "its actor or headers"
                                                               : nullptr;
    if (where == nullptr) continue;
    return examination.warn("personal data",
                            "event " + std::to_string(event.sequence.value()) +
                                " seems to have an e-mail address in " + where +
                                ", which can't be forgotten",
                            "use ids there: docs/guides/personal-data.md");
  }
} catch (const CorruptEvent&) {
  // Another examination reports it.
}

std::string folder_of(const std::string& file) {
  std::error_code error;
  const auto path = std::filesystem::weakly_canonical(file, error);
  return error ? std::string{} : path.parent_path().string();
}

/// Checks what a backup of one folder would contain together.
void look_at_folder(Examination& examination, Invocation& call, StoreSession& session) {
  const Settings& settings = call.settings();
  const std::string folder = folder_of(settings.text("keys.store"));
  std::string beside;
  const auto look = [&](const std::string& file, const char* what) {
    if (folder_of(file) == folder) beside += (beside.empty() ? "" : ", ") + std::string{what};
  };
  if (!session.place().is_on_server()) look(sqlite::path(session.store()), "the events");
  look(settings.key_file("keys.master", ".master"), "the master key");
  look(settings.key_file("keys.erasures", ".erasures"), "the file of erasures");
  if (beside.empty()) return examination.fine("keys", "the key store has a folder of its own");
  examination.warn("keys", "in the folder of the key store: " + beside,
                   "keep them apart: a backup of one folder brings back what was forgotten");
}

void look_at_rotation(Examination& examination, Keys& keys, Timestamp now,
                      const std::string& call) {
  const KeyStanding standing = keys.standing();
  const Timestamp rotated_at = standing.rotated_at.value_or(standing.made_at);
  const auto age = std::max(now - rotated_at, Timestamp::duration{0});
  if (standing.is_rotating) {
    return examination.warn("rotation", "a rotation of the keys isn't finished",
                            "'" + call + "privacy rotate', unless one runs");
  }
  if (standing.rotation > 1 && !standing.rotated_at) {
    return examination.warn("rotation", "the last rotation left former keys, so it isn't certain",
                            "'" + call + "privacy rotate': it says what keeps them");
  }
  bool has_forgotten = false;
  std::int64_t after = 0;
  while (!has_forgotten) {
    const auto found = keys.destroyed(after, keys_at_once_of_doctor);
    if (found.empty()) break;
    after = found.back().number;
    has_forgotten = std::any_of(found.begin(), found.end(), [&](const DestroyedKey& key) {
      return key.destroyed_at >= rotated_at;
    });
  }
  if (has_forgotten && age > long_without_rotation) {
    return examination.warn("rotation",
                            "somebody was forgotten since the keys were rotated, " + in_words(age) +
                                " ago: old pages may still have the keys",
                            "'" + call + "privacy rotate', and then by a timer, once a week");
  }
  examination.fine("rotation", standing.rotation > 1
                                   ? "the keys were rotated " + in_words(age) + " ago"
                                   : "the keys were never rotated since they were made, " +
                                         in_words(age) + " ago");
}

void look_at_server_log(Examination& examination, StoreSession& session) {
  if (!session.place().is_on_server()) return;
  const std::string logged = postgres::server_status(session.store()).logged_values;
  if (logged.empty()) return examination.fine("server log", "it has no values");
  examination.warn("server log", logged + " writes values into the server's log",
                   "ALTER SYSTEM RESET it, and remove the logs: clear columns stay in them");
}

/// Checks that no part of the key store has remains of destroyed keys.
void look_at_erasures(Examination& examination, StoreSession& session, Keys& keys,
                      const std::string& call) {
  const ReappliedErasures left = reapply_erasures(session.store(), keys, true);
  if (left.to_destroy > 0) {
    examination.bad(
        "erasures",
        counted(left.to_destroy, "key") +
            " of people who were forgotten can be had again, as after a backup was "
            "restored" +
            (left.by_events > 0 ? "; of " + in_digits(left.by_events) +
                                      " only an imported event says so, which may be forged"
                                : ""),
        "'" + call + "privacy reapply --dry-run', and without it if it is true; '" + call +
            "privacy hold' keeps what a forged event names");
  }
  if (left.to_fence > 0) {
    examination.bad("erasures",
                    "the store doesn't know of " + counted(left.to_fence, "destroyed key") +
                        ", as after an older backup of it was restored",
                    "'" + call + "privacy reapply'");
  }
  for (const std::string& problem : keys.erasure_problems()) {
    examination.bad("erasures", problem, "what of it is genuine has been applied");
  }
}

/// Changes nothing.
void look_at_binding(Examination& examination, StoreSession& session, Keys& keys) {
  session.place().open_to_read({.keys = &keys});
  const std::int64_t highest = keys.standing().highest;
  examination.fine(
      "keys", "the key store is this store's, with keys up to number " + std::to_string(highest));
}

}  // namespace

void look_at_privacy(Examination& examination, Invocation& call, StoreSession& session) {
  const std::string own_call = call.app.name + ' ';
  look_at_names(examination, session.store());
  try {
    KeySession opened{call, true};
    if (!opened.is_named()) {
      if (has_personal_fields(session.store())) {
        examination.warn("keys", "not checked, and events have sealed fields",
                         "'" + own_call + "doctor --keys FILE'");
      }
      return;
    }
    Keys& keys = opened.keys();
    look_at_binding(examination, session, keys);
    look_at_folder(examination, call, session);
    look_at_rotation(examination, keys, session.store().conventions().clock->now(), own_call);
    look_at_erasures(examination, session, keys, own_call);
    look_at_server_log(examination, session);
  } catch (const Error& e) {
    // For example a master key that others may read, or a key store that is too old.
    examination.bad("keys", e.what(), "nothing personal can be read or written until then");
  }
}

}  // namespace stela::tool
