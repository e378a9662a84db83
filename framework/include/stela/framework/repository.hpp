// Loads and saves aggregates of one type.
#pragma once

#include <stela/framework/aggregate_root.hpp>
#include <stela/framework/detail/event_encoder.hpp>
#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela {

/// The moment as of which an aggregate is loaded.
struct Moment {
  StreamVersion version = StreamVersion::max();
  GlobalSequence sequence = GlobalSequence::max();
  std::optional<Timestamp> time = {};

  constexpr bool is_bounded() const noexcept {
    return version != StreamVersion::max() || sequence != GlobalSequence::max() || time;
  }
};

/// The aggregate as it was at this version of its stream.
inline Moment at_version(StreamVersion version) {
  return {.version = version};
}
/// The aggregate as it was when the store's last event had this sequence.
inline Moment at_sequence(GlobalSequence sequence) {
  return {.sequence = sequence};
}
/// The aggregate as it was at this time: with everything recorded before the first later event.
inline Moment as_of(Timestamp time) {
  return {.time = time};
}

namespace detail {

[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_not_found(const StreamId& stream);
[[noreturn]] STELA_FRAMEWORK_EXPORT void refuse_saving(const StreamId& stream,
                                                       std::string_view problem);
/// Logs the problem of a stored snapshot and drops it. No data is lost: the events exist.
STELA_FRAMEWORK_EXPORT void discard_snapshot(EventLog& log, const StreamId& stream,
                                             StreamVersion version,
                                             std::string_view problem) noexcept;
STELA_FRAMEWORK_EXPORT void log_snapshot_failure(const Conventions& conventions,
                                                 const StreamId& stream,
                                                 std::string_view problem) noexcept;

/// The result of an append for one stream.
struct AppendedStream {
  StreamVersion version = {};
  /// The sequence of the event with that version.
  GlobalSequence sequence = {};
  /// As in AppendResult.
  bool repeated = false;
};

/// Takes and restores snapshots of `A`.
template <class A>
class Snapshots {
 public:
  static constexpr SnapshotPolicy policy = snapshot_policy_of<A>();

  /// Restores the newest usable snapshot into `aggregate` and returns it.
  static std::optional<StoredSnapshot> restore(EventLog& log, A& aggregate, const Moment& until) {
    if constexpr (policy.uses_snapshots()) {
      static_assert(check_layout());
      // A snapshot can't be checked against a time.
      if (until.time) return std::nullopt;
      auto snapshot = log.find_snapshot(aggregate.stream(), until.version, until.sequence);
      if (!snapshot || snapshot->state_version != State::snapshot_version) return std::nullopt;
      try {
        AggregateAccess::restore(aggregate,
                                 decode(log.conventions().reading(), aggregate.stream(), *snapshot),
                                 snapshot->version);
        return snapshot;
      } catch (const codec::DecodeError& e) {
        discard_snapshot(log, aggregate.stream(), snapshot->version, e.what());
      }
    }
    return std::nullopt;
  }

  /// Takes a snapshot of the state after the event with that version and sequence.
  static void take(EventLog& log, const A& aggregate, StreamVersion version,
                   GlobalSequence sequence) {
    static_assert(check_layout());
    StoredSnapshot snapshot{version, sequence, State::snapshot_version, {}};
    codec::Sealing sealing{
        .show = codec::Sealing::Show::sealed,
        .keys = log.conventions().keys,
        .place = codec::Place::of_snapshot(aggregate.stream(), State::snapshot_version),
        .stream = &aggregate.stream()};
    try {
      codec::encode(log.conventions().codec, aggregate.state(), snapshot.payload, &sealing);
    } catch (const codec::EncodeError& e) {
      // A process that has the keys takes the snapshot.
      if (sealing.lacked_keys) return;
      throw_not_encodable("the state of '" + aggregate.stream().name() + "'", e.what());
    }
    log.save_snapshot(aggregate.stream(), snapshot);
  }

  /// As `take`, but errors are only logged, because the events are safe without it. Takes none if a
  /// listener recorded more: the state is ahead then.
  static void try_take(EventLog& log, const A& aggregate, StreamVersion version,
                       GlobalSequence sequence) noexcept {
    try {
      if (aggregate.changes().empty()) take(log, aggregate, version, sequence);
    } catch (const std::exception& e) {
      log_snapshot_failure(log.conventions(), aggregate.stream(), e.what());
    }
  }

  /// Takes a snapshot after a save of events after `before`, if one is due. Takes none for an
  /// append that was saved before under the same append id: others may have appended after it.
  static void after_save(EventLog& log, const A& aggregate, StreamVersion before,
                         const AppendedStream& after) noexcept {
    if constexpr (policy.uses_snapshots()) {
      if (after.repeated || !policy.is_due_after_saving(before.value(), after.version.value())) {
        return;
      }
      try_take(log, aggregate, after.version, after.sequence);
    }
  }

 private:
  using State = typename A::StateType;

  static State decode(const Reading& reading, const StreamId& stream,
                      const StoredSnapshot& snapshot) {
    const codec::Opening opening{reading.keys,
                                 codec::Place::of_snapshot(stream, snapshot.state_version)};
    return codec::decode<State>(reading.codec, snapshot.payload, &opening);
  }

  static consteval bool check_layout() {
    static_assert(
        requires {
          { State::snapshot_version } -> std::convertible_to<int>;
        },
        "stela: a state with snapshots needs `static constexpr int snapshot_version = "
        "1;`, raised whenever its fields change");
    static_assert(codec::Serializable<State>,
                  "stela: a state with snapshots needs a cereal `serialize`");
    static_assert(check_personal<State>());
    return true;
  }
};

/// The result of reading a stream into an aggregate.
struct Loaded {
  std::int64_t events = 0;
  GlobalSequence sequence = {};
  /// The snapshot isn't of this stream.
  bool wrong_snapshot = false;
};

/// Applies the events after `snapshot`, if there is one. Reads the snapshot's own event again, to
/// check that it belongs to this stream.
template <class A>
Loaded read_into(A& aggregate, EventLog& log, const Moment& until, const StoredSnapshot* snapshot) {
  const StreamQuery query{.from = snapshot != nullptr ? snapshot->version : StreamVersion{1},
                          .to = until.version,
                          .up_to = until.sequence};
  EventDecoder<typename A::EventsType> decoder{log.conventions().reading()};
  Loaded loaded{.wrong_snapshot = snapshot != nullptr};
  for (const StoredEvent& event : log.read_stream(aggregate.stream(), query)) {
    if (until.time && event.recorded_at > *until.time) break;
    loaded.sequence = event.sequence;
    if (loaded.wrong_snapshot) {
      loaded.wrong_snapshot =
          event.version != snapshot->version || event.sequence != snapshot->sequence;
      if (loaded.wrong_snapshot) break;
      continue;
    }
    decoder.decode(event, [&](const auto& decoded) {
      AggregateAccess::apply(aggregate, decoded, event.version);
    });
    ++loaded.events;
  }
  return loaded;
}

/// The aggregate as of `until`. Empty if its stream has no events by then. With `closed` it is
/// historical; otherwise it can be saved if its stream has no later events.
template <class A>
std::optional<A> load_aggregate(EventLog& log, const StreamId& stream, const Moment& until,
                                bool closed) {
  std::optional<A> aggregate{std::in_place, stream};
  const auto snapshot = Snapshots<A>::restore(log, *aggregate, until);
  Loaded loaded = read_into(*aggregate, log, until, snapshot ? &*snapshot : nullptr);
  if (loaded.wrong_snapshot) {
    discard_snapshot(log, stream, snapshot->version, "isn't of this stream");
    aggregate.emplace(stream);
    loaded = read_into(*aggregate, log, until, nullptr);
  }
  const StreamVersion version = aggregate->version();
  if (version.value() == 0) return std::nullopt;
  AggregateAccess::set_store(*aggregate, log.conventions().store);
  AggregateAccess::mark_loaded(*aggregate, log.outcome_of(loaded.sequence));
  if (until.is_bounded()) {
    if (closed) AggregateAccess::close(*aggregate, Closed::historical);
  } else if constexpr (Snapshots<A>::policy.uses_snapshots()) {
    if (Snapshots<A>::policy.is_due_after_reading(loaded.events)) {
      Snapshots<A>::try_take(log, *aggregate, version, loaded.sequence);
    }
  }
  return aggregate;
}

template <class A>
std::optional<A> load_aggregate(EventLog& log, const StreamId& stream, const Moment& until) {
  return load_aggregate<A>(log, stream, until, until.is_bounded());
}

/// Call it after `begin_save`. UsageError if the aggregate depends on an open transaction other
/// than `log`: by the time of the append, that transaction may be rolled back, and other writers
/// may have used its versions.
template <class A>
void check_is_not_open_elsewhere(EventLog& log, const A& aggregate) {
  if (AggregateAccess::depends_on_no_other(aggregate, nullptr)) return;
  // The outcome that an event would depend on if it were appended now.
  const auto here = log.outcome_of(GlobalSequence::max());
  if (AggregateAccess::depends_on_no_other(aggregate, here.get())) return;
  refuse_saving(aggregate.stream(),
                "was loaded or saved in a transaction that hasn't ended; save it there, or "
                "afterwards");
}

/// Logs that a listener recorded changes that no unit of work will save.
STELA_FRAMEWORK_EXPORT void log_lost_changes(const Conventions& conventions,
                                             const StreamId& stream) noexcept;

/// True if the stream has exactly these events after `before`, and reached `after` with them.
STELA_FRAMEWORK_EXPORT bool are_stored(EventLog& log, const StreamAppend& append,
                                       StreamVersion before, StreamVersion after);

/// A save in progress.
struct BegunSave {
  /// The version that it expects.
  StreamVersion before = {};
  /// The identity of the aggregate.
  std::uint64_t identity = 0;
};

/// Notes that the commit of its changes is in doubt.
template <class A>
void set_in_doubt(EventLog& log, A& aggregate, const BegunSave& save) noexcept {
  if (!AggregateAccess::is_being_saved(aggregate, save.identity)) return;
  AggregateAccess::set_store(aggregate, log.conventions().store);
  AggregateAccess::set_trouble(aggregate, Discrepancy::commit_in_doubt);
}

/// Called after an append of the aggregate's changes, which led to version `after`. Marks them as
/// saved, or the aggregate as different from what is stored. Takes a snapshot if one is due. If a
/// listener has replaced the aggregate, the new one is left alone: nothing of it was saved.
template <class A>
void note_save(EventLog& log, A& aggregate, const StreamAppend& append, const BegunSave& save,
               const AppendedStream& after) {
  if (!AggregateAccess::is_being_saved(aggregate, save.identity)) return;
  AggregateAccess::set_store(aggregate, log.conventions().store);
  try {
    if (after.repeated && !are_stored(log, append, save.before, after.version)) {
      return AggregateAccess::set_trouble(aggregate, Discrepancy::append_id_repeated);
    }
    AggregateAccess::mark_saved(aggregate, append.events.size(), after.version,
                                log.outcome_of(after.sequence));
  } catch (...) {
    AggregateAccess::set_trouble(aggregate, Discrepancy::not_noted);
    throw;
  }
  Snapshots<A>::after_save(log, aggregate, save.before, after);
}

}  // namespace detail

struct SaveOptions {
  /// An id of the caller for this save, at most 128 bytes. Saving again under the same id, after a
  /// CommitInDoubt for instance, writes nothing and succeeds. The id is stored even if there are no
  /// events to save.
  std::string_view append_id = {};
  /// The context of the events, instead of this thread's: for coroutines. Code that the save calls
  /// (participants, listeners, a unit's work) has it as well. UsageError if it can't be stored.
  const Context* context = nullptr;
};

/// Loads and saves aggregates of type `A`, from a store or inside an open transaction. Threads: as
/// its EventLog; loaded aggregates belong to their callers.
template <class A>
class Repository {
 public:
  /// `log` must outlive the repository.
  explicit Repository(EventLog& log) noexcept : log_{&log.anchor()} {
    static_assert(detail::check_aggregate<A>());
  }

  /// AggregateNotFound if the stream has no events (before that moment). An aggregate that is
  /// loaded as of a moment is historical: it can't be changed.
  A load(const Id<A>& id, const Moment& moment = {});

  std::optional<A> find(const Id<A>& id, const Moment& moment = {});

  /// Appends the events that the aggregate recorded since it was loaded or saved.
  /// ConcurrencyConflict if another writer appended to its stream meanwhile: load it again. If the
  /// save throws, nothing is stored and the aggregate is unchanged, with two exceptions:
  /// - After a CommitInDoubt it can only be saved again, under an append id, or loaded.
  /// - An error may occur after the append: there is no memory to record the save, or the append id
  ///   was used before and the stored events can't be read. The events are then stored, or the
  ///   transaction decides about them. The aggregate can't be used: load it again.
  ///
  /// Otherwise the aggregate follows the enclosing transaction.
  ///
  /// Events that a listener records on the aggregate during the save are unsaved afterwards. A
  /// listener may also assign to the aggregate, from `load` for instance; it then keeps the
  /// assigned value. The aggregate must not be destroyed during the save.
  ///
  /// UsageError if the aggregate was loaded or saved in an open transaction, and this save isn't
  /// inside that one: after a rollback, other writers may use its versions. UsageError if it was
  /// loaded from another store, or saved to another one.
  ///
  /// If the append id was used before, the aggregate can be used further only if it recorded
  /// exactly the events that were stored then.
  AppendResult save(A& aggregate, const SaveOptions& options = {});

  /// Takes a snapshot now. The aggregate must have no unsaved changes.
  void snapshot(const A& aggregate) requires(detail::snapshot_policy_of<A>().uses_snapshots()) {
    check(aggregate);
    detail::AggregateAccess::check_is_of(log_->conventions().store, aggregate);
    if (!aggregate.changes().empty()) {
      detail::refuse_saving(aggregate.stream(), "has unsaved changes; save it, then snapshot it");
    }
    // Clang 14 instantiates members of an explicit instantiation even if their `requires` fails.
    if constexpr (detail::snapshot_policy_of<A>().uses_snapshots()) {
      const StreamQuery last{.from = aggregate.version(), .to = aggregate.version()};
      for (const StoredEvent& event : log_->read_stream(aggregate.stream(), last)) {
        detail::Snapshots<A>::take(*log_, aggregate, event.version, event.sequence);
      }
    }
  }

 private:
  AppendResult save_in_scope(A& aggregate, const SaveOptions& options);
  AppendResult save_nothing(StreamVersion version, const SaveOptions& options) {
    AppendResult result;
    if (!options.append_id.empty()) result = log_->append({.append_id = options.append_id});
    result.versions = {version};
    return result;
  }

  static void check(const A& aggregate) {
    if (aggregate.is_historical()) {
      detail::refuse_saving(aggregate.stream(),
                            "was loaded as of an earlier moment, so it can only be looked at");
    }
    if (aggregate.stream().category() != A::category) {
      detail::refuse_saving(aggregate.stream(), "isn't of this repository's category");
    }
  }

  EventLog* log_;
};

// Defined outside of the class, because functions inside are inline and would be compiled at each
// call.

template <class A>
A Repository<A>::load(const Id<A>& id, const Moment& moment) {
  auto aggregate = find(id, moment);
  if (!aggregate) detail::throw_not_found(id.stream());
  return std::move(*aggregate);
}

template <class A>
std::optional<A> Repository<A>::find(const Id<A>& id, const Moment& moment) {
  return detail::load_aggregate<A>(*log_, id.stream(), moment);
}

template <class A>
AppendResult Repository<A>::save(A& aggregate, const SaveOptions& options) {
  return detail::in_context(options.context, [&] { return save_in_scope(aggregate, options); });
}

template <class A>
AppendResult Repository<A>::save_in_scope(A& aggregate, const SaveOptions& options) {
  check(aggregate);
  const auto unsaved = detail::AggregateAccess::begin_save(aggregate, !options.append_id.empty());
  if (!unsaved.changes.empty()) detail::check_is_not_open_elsewhere(*log_, aggregate);
  detail::AggregateAccess::check_is_of(log_->conventions().store, aggregate);
  if (unsaved.changes.empty()) return save_nothing(unsaved.version, options);
  const detail::BegunSave begun{unsaved.version, unsaved.identity};
  // A copy, because a listener may replace the aggregate.
  const StreamId stream = aggregate.stream();
  detail::EventEncoder encoder{log_->conventions(), stream};
  detail::encode_changes(encoder, unsaved.changes);
  const StreamAppend append{stream, ExpectedVersion::exactly(begun.before), encoder.events()};
  AppendResult result;
  try {
    result = log_->append({.streams = {&append, 1}, .append_id = options.append_id});
  } catch (const CommitInDoubt&) {
    detail::set_in_doubt(*log_, aggregate, begun);
    throw;
  }
  detail::note_save(*log_, aggregate, append, begun,
                    {result.versions.front(), result.last, result.repeated});
  return result;
}

}  // namespace stela
