// Descriptions of a store: events, streams, snapshots, results of `verify`.
#pragma once

#include "description/description.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/eventstore/tags.hpp>
#include <stela/eventstore/verify.hpp>
#include <stela/framework/codec/codec.hpp>
#include <stela/framework/stored_event.hpp>

#include <optional>

namespace stela::tool {

/// An event that was read with its tags, with its store's codec and the time of the previous event
/// in its stream.
struct ShownEvent {
  const StoredEvent& event;
  Codec codec;
  std::optional<Timestamp> before = {};
};

namespace description {

extern const Description<ShownEvent> event;
extern const Description<ShownEvent> event_with_tags;
/// The columns of a stream's timeline.
extern const Description<ShownEvent> event_of_stream;
extern const Description<KindCount> kind_of_event;
extern const Description<TagEntry> tag;
extern const Description<TagFact> tag_type;
extern const Description<StreamEntry> stream;
extern const Description<SnapshotEntry> snapshot;
extern const Description<stela::Problem> problem;
extern const Description<VerifyResult> verified;

}  // namespace description
}  // namespace stela::tool
