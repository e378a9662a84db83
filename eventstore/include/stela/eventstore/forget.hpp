// Forgetting a person: the keys of personal fields are destroyed, behind a fence in the store.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/framework/event_type.hpp>
#include <stela/framework/keyring.hpp>
#include <stela/framework/stream_id.hpp>

#include <cereal/cereal.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace stela {

struct ForgetOptions {
  /// Who asked for it, and why: an id, a ticket, a paragraph.
  std::string by = {};
  std::string reason = {};
  /// Only what is kept for these purposes; "" is the default one. Empty: all of it.
  std::vector<std::string> purposes = {};
};

/// What forgetting did.
struct ForgetReport {
  /// The fence; 0 if there was nothing to forget.
  GlobalSequence fence = {};
  std::vector<KeyInfo> keys = {};
  /// What is under a hold, and lives on: `hold` says until when and why. Forget it again later.
  std::vector<KeyInfo> kept = {};
};

/// Forgets what is sealed for `subject`: appends the fence, then destroys the keys. From then on
/// every reader finds the fields forgotten, here at once, and within a minute wherever else the key
/// store is open. An append whose fields were sealed before is refused: SubjectForgotten.
///
/// What is for a purpose under a hold (`Keys::hold`) stays as it is. A hold that comes after the
/// fence is too late.
///
/// If it is interrupted after the fence, whoever opens the store with its keys next completes it.
/// What was read into read models in clear stays there until their projectors remove it, and
/// backups keep what they have: see docs/guides/forget-a-person.md. UsageError if the store was
/// opened without keys.
STELA_EVENTSTORE_EXPORT ForgetReport forget(Store& store, const StreamId& subject,
                                            const ForgetOptions& options);

/// Personal fields can be recorded for the subject again, with new keys. What was forgotten stays
/// forgotten.
STELA_EVENTSTORE_EXPORT void allow_again(Store& store, const StreamId& subject);

/// The fence, in the stream `forgotten-<name of the subject>`: no later event is sealed with these
/// keys. It is published as any other event, so that other programs delete what they copied. It
/// holds no personal data; don't put any into `by` and `reason`.
struct Forgotten {
  static constexpr std::string_view category = "forgotten";
  static constexpr EventType event_type{"stela.forgotten", 1, should_publish};

  /// The ids of the keys, and the purposes that they were for.
  std::vector<std::string> keys = {};
  std::vector<std::string> purposes = {};
  std::string by = {};
  std::string reason = {};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(keys), CEREAL_NVP(purposes), CEREAL_NVP(by), CEREAL_NVP(reason));
  }
};

/// Whom the fence in this stream is about: "guest-m1". UsageError for another stream.
STELA_EVENTSTORE_EXPORT StreamId forgotten_subject(const StreamId& stream);

}  // namespace stela
