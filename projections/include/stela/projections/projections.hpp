// The projectors and reactions of an application, and the store whose events they follow.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/projections/projector.hpp>
#include <stela/projections/reaction.hpp>
#include <stela/projections/states.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// What becomes of an event that a handler can't take, once it was tried often enough.
enum class OnError : std::uint8_t {
  /// Its projector stops there until somebody retries or skips the event. Others go on.
  halt,
  /// The event is put aside, to be retried by hand, and its projector goes on.
  park,
};

struct ProjectorOptions {
  OnError on_error = OnError::halt;
  /// How often an event is tried.
  int max_attempts = 5;
  /// The first wait after a failure, doubled each time up to the maximum.
  std::chrono::milliseconds retry_backoff{1'000};
  std::chrono::milliseconds retry_backoff_max{60'000};
};

/// Where a reaction begins when its name is new in the database.
enum class Start : std::uint8_t { now, beginning };

struct ReactionOptions {
  Start start = Start::now;
  ProjectorOptions handling = {};
};

struct InlineOptions {
  /// Fill new tables even if those that are there are of this version.
  bool rebuild = false;
};

namespace detail {

/// A projector or a reaction as it was registered.
struct Registration {
  std::string name;
  int version = 1;
  ProjectionKind kind = ProjectionKind::async;
  ProjectorOptions options = {};
  bool is_idempotent = false;
  std::vector<std::string> event_types = {};
  /// The older version that takes part, or is driven, as long as the database has it.
  std::shared_ptr<Registration> before = {};
  /// One of the two is set.
  std::function<std::unique_ptr<AnyProjector>()> make_projector = {};
  std::function<std::unique_ptr<AnyReaction>()> make_reaction = {};
};

}  // namespace detail

/// What an application projects. Register everything here, in every process: a Runner drives the
/// asynchronous projectors and the reactions, inline ones take part in the appends of this process,
/// and a Replayer rebuilds them.
/// Threads: register before anything uses it; the rest from any.
class STELA_PROJECTIONS_EXPORT Projections {
 public:
  /// Makes or migrates the tables that it keeps its books in. `store` must outlive it.
  explicit Projections(Store& store);
  /// Detaches its inline projectors: waits for the open transaction of another thread, however long
  /// that takes. A transaction that waits for the thread that is here hangs.
  ~Projections();
  Projections(const Projections&) = delete;
  Projections& operator=(const Projections&) = delete;

  /// A projector that follows the store asynchronously, driven by a Runner. If its name is new, its
  /// tables are made. If the database has an older version, new tables are made beside the old
  /// ones, which a Runner or Replayer fills and then puts in their place. UsageError if the
  /// database has a newer version, the name is taken, or a table's plain name is.
  template <Projector P>
  void add(P projector, const ProjectorOptions& options = {}) {
    add_async(registration(std::move(projector)), options);
  }

  /// As `add`, when no other process drives the older version any more: as long as the database has
  /// the version of `before`, a Runner drives that one beside the new one that it builds, so that
  /// readers' tables stay up to date meanwhile. Afterwards `before` is left alone.
  template <Projector P, Projector Before>
  void add_rolling(P projector, Before before, const ProjectorOptions& options = {}) {
    add_async(rolling(std::move(projector), std::move(before)), options);
  }

  /// A projector whose rows commit with the events: in this process from now on, and every other
  /// that appends must have it too. What it hasn't seen yet is projected before this returns,
  /// beside the existing tables if they are of an older version; processes with that version are
  /// refused from then on. If another process is just doing that, this one waits for it, and takes
  /// over if that one is gone; StoreBusy if it makes no progress for half a minute. UsageError if
  /// the store has the projector already, by another `Projections`.
  template <Projector P>
  void add_inline(P projector, const InlineOptions& options = {}) {
    attach_inline(registration(std::move(projector)), options);
  }

  /// As `add_inline`, in a release that rolls out beside processes with an older version: as long
  /// as the database has the version of `before`, that one takes part here too, and the others
  /// continue. The first process that registers the new version by `add_inline` switches to it, and
  /// so does this one with its next append.
  template <Projector P, Projector Before>
  void add_inline_rolling(P projector, Before before) {
    attach_inline(rolling(std::move(projector), std::move(before)), {});
  }

  /// A reaction, driven by a Runner: what it records commits with its checkpoint.
  template <Reaction R>
  void add_reaction(R reaction, const ReactionOptions& options = {}) {
    detail::Registration made{.name = std::string{R::reaction_type.name},
                              .kind = ProjectionKind::reaction,
                              .event_types = names_of<typename R::Events>()};
    made.make_reaction = [reaction = std::move(reaction), codec = codec()] {
      return std::make_unique<detail::TypedReaction<R>>(reaction, codec);
    };
    add_reaction(std::move(made), options);
  }

  /// Waits until the model that readers see has everything up to `sequence`: for reading one's own
  /// writes. False if it hasn't when the time is over, or it is halted before. UsageError if the
  /// database has no such projector.
  [[nodiscard]] bool wait_for(std::string_view projector, GlobalSequence sequence,
                              std::chrono::milliseconds timeout);

  Store& store() const noexcept { return store_; }

  /// For the classes beside this one.
  const std::vector<detail::Registration>& registrations() const noexcept { return registered_; }

 private:
  class InlineProjector;

  Codec codec() const noexcept { return store_.conventions().codec; }

  template <class Events>
  static std::vector<std::string> names_of() {
    const auto names = detail::event_names<Events>();
    return {names.begin(), names.end()};
  }

  template <class P, class Before>
  detail::Registration rolling(P projector, Before before) const {
    static_assert(P::projector_type.name == Before::projector_type.name &&
                      P::projector_type.version > Before::projector_type.version,
                  "stela: a projector that rolls out takes an older version of itself, of the same "
                  "name");
    detail::Registration made = registration(std::move(projector));
    made.before = std::make_shared<detail::Registration>(registration(std::move(before)));
    return made;
  }

  template <class P>
  detail::Registration registration(P projector) const {
    detail::Registration made{.name = std::string{P::projector_type.name},
                              .version = P::projector_type.version,
                              .is_idempotent = detail::is_idempotent<P>(),
                              .event_types = names_of<typename P::Events>()};
    made.make_projector = [projector = std::move(projector), codec = codec()] {
      return std::make_unique<detail::TypedProjector<P>>(projector, codec);
    };
    return made;
  }

  void add_async(detail::Registration registration, const ProjectorOptions& options);
  void attach_inline(detail::Registration registration, const InlineOptions& options);
  void add_reaction(detail::Registration registration, const ReactionOptions& options);
  void check_new(const detail::Registration& registration) const;

  Store& store_;
  std::vector<detail::Registration> registered_;
  std::vector<std::unique_ptr<InlineProjector>> inline_;
};

}  // namespace stela
