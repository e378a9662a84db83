#include "description/privacy.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

using description::ErasedKey;
using description::Erasure;
using description::Follower;
using description::LivingSubject;

constexpr Field<LivingSubject> subject_fields[] = {
    field<&LivingSubject::name>("subject", {.kind = Kind::untrusted}),
    field<[](const LivingSubject& one) { return std::ssize(one.keys); }>("keys",
                                                                         {.kind = Kind::count}),
    field<[](const LivingSubject& one) {
      return description::purposes_in_json(description::purposes_of(one.keys));
    }>("purposes"),
    field<[](const LivingSubject& one) {
      return description::purposes_in_words(description::purposes_of(one.keys));
    }>("purpose_line", {.title = "purposes", .kind = Kind::untrusted, .is_text_only = true}),
    field<[](const LivingSubject& one) { return one.keys.front().made_at; }>("since_at",
                                                                             {.title = "since"}),
    field<[](const LivingSubject& one) { return one.keys.front().number; }>("key"),
};

constexpr Look of_purpose{.kind = Kind::untrusted, .absent = "default"};

constexpr Field<DestroyedKey> destroyed_fields[] = {
    field<&DestroyedKey::number>("key"),
    field<&DestroyedKey::id>("key_id"),
    field<&DestroyedKey::purpose>("purpose", of_purpose),
    field<&DestroyedKey::generation>("generation"),
    field<&DestroyedKey::destroyed_at>("destroyed_at"),
};

constexpr Field<KeyInfo> key_fields[] = {
    field<&KeyInfo::number>("key"),
    field<&KeyInfo::id>("key_id"),
    field<[](const KeyInfo& key) { return key.subject.purpose; }>("purpose", of_purpose),
    field<&KeyInfo::generation>("generation"),
    field<&KeyInfo::made_at>("made_at"),
    field<[](const KeyInfo& key) { return key.hold.has_value(); }>("held"),
    field<[](const KeyInfo& key) { return key.hold ? key.hold->until : std::nullopt; }>(
        "hold_ends_at", {.title = "held until", .absent = "-"}),
    field<[](const KeyInfo& key) { return key.hold ? key.hold->reason : std::string{}; }>(
        "held_because", {.title = "because", .kind = Kind::untrusted}),
};

constexpr Field<ErasedKey> erased_fields[] = {
    field<&ErasedKey::id>("key_id"),
    field<&ErasedKey::purpose>("purpose", of_purpose),
    field<&ErasedKey::generation>("generation"),
    field<&ErasedKey::destroyed_at>("destroyed_at", {.absent = "not destroyed"}),
};

constexpr Field<Follower> erasure_follower_fields[] = {
    field<&Follower::name>("projector"),
    field<&Follower::build>("build"),
    field<&Follower::position>("position"),
    field<&Follower::has_passed>("has_passed", {.title = "has passed it"}),
};

constexpr Field<Erasure> erasure_fields[] = {
    field<[](const Erasure& one) {
      return one.sequence == GlobalSequence{} ? std::nullopt : std::optional{one.sequence};
    }>("erasure", {.absent = "the store has no event of it"}),
    field<&Erasure::at>("at"),
    field<&Erasure::by>("by", {.kind = Kind::untrusted}),
    field<&Erasure::why>("why", {.kind = Kind::untrusted}),
    field<&Erasure::binding>("binding"),
    field<[](const Erasure& one) { return json_list(description::erased_key, one.keys); }>("keys"),
    field<&Erasure::is_destroyed>("destroyed"),
    field<[](const Erasure& one) { return json_list(description::follower, one.projectors); }>(
        "projectors"),
    field<&Erasure::publication>("publication", {.kind = Kind::word}),
    field<&Erasure::living_keys>("living_keys", {.kind = Kind::count}),
    field<&Erasure::is_confirmed>("confirmed"),
    field<&Erasure::certain_at>("certain_at", {.title = "certain since", .absent = "not yet"}),
};

}  // namespace

namespace description {

bool Erasure::is_destroyed() const {
  return !keys.empty() && std::all_of(keys.begin(), keys.end(), [](const ErasedKey& key) {
    return key.destroyed_at.has_value();
  });
}

std::vector<std::string> purposes_of(const std::vector<KeyInfo>& keys) {
  std::vector<std::string> all;
  for (const KeyInfo& key : keys) {
    const std::string& purpose = key.subject.purpose;
    if (std::find(all.begin(), all.end(), purpose) == all.end()) all.push_back(purpose);
  }
  return all;
}

std::string purposes_in_words(const std::vector<std::string>& purposes) {
  std::string text;
  for (const std::string& purpose : purposes) {
    text.append(text.empty() ? "" : ", ").append(purpose.empty() ? "default" : purpose);
  }
  return text;
}

Json purposes_in_json(const std::vector<std::string>& purposes) {
  return json_list(purposes, [](const std::string& purpose) {
    std::string text;
    if (purpose.empty()) return std::string{"null"};
    json::append_string(text, purpose);
    return text;
  });
}

constexpr Description<LivingSubject> living_subject{
    subject_fields, {.table = "subject keys purpose_line since_at"}};
constexpr Description<DestroyedKey> destroyed_key{
    destroyed_fields, {.table = "key key_id purpose generation destroyed_at"}};
constexpr Description<KeyInfo> living_key{
    key_fields, {.table = "key key_id purpose generation made_at held hold_ends_at held_because"}};
constexpr Description<ErasedKey> erased_key{erased_fields,
                                            {.table = "key_id purpose generation destroyed_at"}};
constexpr Description<Follower> follower{erasure_follower_fields,
                                         {.table = "projector build position has_passed"}};
constexpr Description<Erasure> erasure{
    erasure_fields,
    {.sheet = "erasure at by why binding destroyed living_keys publication certain_at"}};

}  // namespace description
}  // namespace stela::tool
