// Descriptions of people and their keys.
#pragma once

#include "description/description.hpp"

#include <stela/eventstore/keys.hpp>

#include <optional>
#include <string>
#include <vector>

namespace stela::tool::description {

/// A person with personal data in the store.
struct LivingSubject {
  std::string name = {};
  /// In the order of their numbers.
  std::vector<KeyInfo> keys = {};
};

/// A key of an erasure.
struct ErasedKey {
  std::string id = {};
  std::string purpose = {};
  std::optional<std::int64_t> generation = {};
  /// Unset: it isn't destroyed, or the key store doesn't know it.
  std::optional<Timestamp> destroyed_at = {};
  /// A later rotation makes it certain.
  std::int64_t rotation = 0;
};

/// A projector, and whether it has passed a position in the log.
struct Follower {
  std::string name = {};
  std::int64_t build = 0;
  GlobalSequence position = {};
  bool has_passed = false;
};

/// An erasure of personal data.
struct Erasure {
  /// 0 if the store has no event of it: an older backup was restored.
  GlobalSequence sequence = {};
  Timestamp at = {};
  std::string by = {};
  std::string why = {};
  /// A hash of the subject and the first key. Knowing both is enough to check it.
  std::string binding = {};
  std::vector<ErasedKey> keys = {};
  std::vector<Follower> projectors = {};
  /// The publication of the event in the outbox.
  std::string publication = {};
  std::optional<Timestamp> certain_at = {};
  /// The store has its keys as forgotten; and by this event, not only by what the key store said.
  bool is_known = false;
  bool is_confirmed = false;
  /// How many keys of the person live.
  std::int64_t living_keys = 0;

  /// True if all of its keys are destroyed.
  bool is_destroyed() const;
};

/// "default, invoices".
std::string purposes_in_words(const std::vector<std::string>& purposes);
/// As in JSON: the default purpose is null.
Json purposes_in_json(const std::vector<std::string>& purposes);
std::vector<std::string> purposes_of(const std::vector<KeyInfo>& keys);

extern const Description<LivingSubject> living_subject;
extern const Description<DestroyedKey> destroyed_key;
extern const Description<KeyInfo> living_key;
extern const Description<ErasedKey> erased_key;
extern const Description<Follower> follower;
extern const Description<Erasure> erasure;

}  // namespace stela::tool::description
