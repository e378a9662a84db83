// The projectors and reactions of an application, and the store whose events they follow.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/projections/process.hpp>
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
namespace projections {
class Progress;
}  // namespace projections

/// What happens to an event after its handler has failed `max_attempts` times.
enum class OnError : std::uint8_t {
  /// The projector stops until an operator retries or skips the event. Other projectors continue.
  stop,
  /// The event is parked until an operator retries it, and the projector continues.
  park,
};

STELA_PROJECTIONS_EXPORT std::string_view to_string(OnError on_error) noexcept;

struct ProjectorOptions {
  OnError on_error = OnError::stop;
  /// How often an event is tried.
  int max_attempts = 5;
  /// The first wait after a failure. It doubles each time up to the maximum.
  std::chrono::milliseconds retry_backoff{1'000};
  std::chrono::milliseconds retry_backoff_max{60'000};
};

/// Where a reaction or a process begins if its name is new in the database.
enum class ReactionStart : std::uint8_t { now, beginning };

struct ReactionOptions {
  ReactionStart start = ReactionStart::now;
  ProjectorOptions handling = {};
};

struct InlineOptions {
  /// Fill new tables even if the existing ones have this version.
  bool rebuild = false;
};

namespace detail {

/// A registered projector or reaction.
struct Registration {
  std::string name;
  int version = 1;
  ProjectionKind kind = ProjectionKind::async;
  ProjectorOptions options = {};
  bool is_idempotent = false;
  std::vector<std::string> event_types = {};
  /// The older version, which takes part or is driven while the database still has it.
  std::shared_ptr<Registration> before = {};
  /// Exactly one of the two is set.
  std::function<std::unique_ptr<AnyProjector>()> make_projector = {};
  std::function<std::unique_ptr<AnyProcess>()> make_process = {};
  /// True for a process, which sets timers.
  bool has_timers = false;
};

}  // namespace detail

/// The projections of an application. Register all of them here, in every process. A Runner drives
/// the asynchronous projectors and the reactions. Inline projectors take part in the appends of
/// this process. A Replayer rebuilds projectors. Threads: register before anything uses it; other
/// calls from any thread.
class STELA_PROJECTIONS_EXPORT Projections {
 public:
  /// Creates or migrates the tables that record the state of projections. `store` must outlive it.
  explicit Projections(Store& store);
  /// Only records what is registered, to be displayed: nothing takes part in appends or can be
  /// driven, and the store is neither read nor written.
  struct OnlyNoted {};
  Projections(Store& store, OnlyNoted);
  /// Detaches its inline projectors after waiting, without a limit, for the open transaction of
  /// another thread. That transaction must not wait for this thread: both would hang.
  ~Projections();
  Projections(const Projections&) = delete;
  Projections& operator=(const Projections&) = delete;

  /// A projector that follows the store asynchronously, driven by a Runner. If its name is new, its
  /// tables are created. If the database has an older version, a Runner or Replayer fills new
  /// tables beside the old ones and then puts them in their place. UsageError if the database has a
  /// newer version, if `create` makes other tables than those of the same version that the database
  /// has, or if its name or the plain name of one of its tables is taken.
  template <Projector P>
  void add(P projector, const ProjectorOptions& options = {}) {
    add_async(registration(std::move(projector)), options);
  }

  /// As `add`, while processes with the older version are being replaced. Other processes must no
  /// longer drive the older version. While the database has the version of `before`, a Runner
  /// drives it beside the new build, so that readers' tables stay up to date. Afterwards `before`
  /// is unused.
  template <Projector P, Projector Before>
  void add_rolling(P projector, Before before, const ProjectorOptions& options = {}) {
    add_async(rolling(std::move(projector), std::move(before)), options);
  }

  /// A projector whose rows commit with the events. It takes part in every append of this process
  /// from now on, and every other process that appends must have it too. Events that it hasn't seen
  /// yet are projected before this call returns; if the existing tables have an older version, new
  /// ones are filled beside them. Afterwards processes with the older version are refused. If
  /// another process is doing the same, this call waits for it, and takes over if that process has
  /// ended. StoreBusy if that process makes no progress for half a minute. UsageError if another
  /// `Projections` has already registered this projector with the store.
  template <Projector P>
  void add_inline(P projector, const InlineOptions& options = {}) {
    attach_inline(registration(std::move(projector)), options);
  }

  /// As `add_inline`, for a release that rolls out beside processes with an older version. While
  /// the database has the version of `before`, that version takes part here too, and the other
  /// processes continue. The first process that registers the new version by `add_inline` switches
  /// to it. This process switches with its next append. A new database begins with the new version.
  /// UsageError if the database has a version older than `before`.
  template <Projector P, Projector Before>
  void add_inline_rolling(P projector, Before before) {
    attach_inline(rolling(std::move(projector), std::move(before)), {});
  }

  /// A reaction, driven by a Runner. The events that it records commit with its checkpoint.
  template <Reaction R>
  void add_reaction(R reaction, const ReactionOptions& options = {}) {
    detail::Registration made{.name = std::string{R::reaction_type.name},
                              .kind = ProjectionKind::reaction,
                              .event_types = names_of<typename R::Events>()};
    made.make_process = [reaction = std::move(reaction), reading = reading()] {
      return std::make_unique<detail::TypedReaction<R>>(reaction, reading);
    };
    attach_reaction(std::move(made), options);
  }

  /// A process, driven by a Runner. The events that it records and the timers that it sets commit
  /// with its checkpoint. A reaction of this name becomes the process, and keeps its checkpoint;
  /// runners that still have it as a reaction lose it. A timer that fails `max_attempts` times is
  /// parked.
  template <ProcessManager P>
  void add_process(P process, const ReactionOptions& options = {}) {
    detail::Registration made{.name = std::string{P::process_type.name},
                              .kind = ProjectionKind::reaction,
                              .event_types = names_of<typename P::Events>()};
    made.has_timers = true;
    made.make_process = [process = std::move(process), reading = reading()] {
      return std::make_unique<detail::TypedProcess<P>>(process, reading);
    };
    attach_reaction(std::move(made), options);
  }

  /// Waits until the model that readers see contains everything up to `sequence`, so that a caller
  /// can read its own writes. False after the timeout, or if the projector is stopped before
  /// `sequence`. UsageError if the database has no such projector. Blocks the thread, unlike
  /// ProjectionWaits.
  [[nodiscard]] bool wait_for(std::string_view projector, GlobalSequence sequence,
                              std::chrono::milliseconds timeout);

  Store& store() const noexcept { return store_; }

  // Used by the other classes of this module.
  const std::vector<detail::Registration>& registrations() const noexcept { return registered_; }
  projections::Progress& progress() const noexcept { return *progress_; }

 private:
  class InlineProjector;

  Reading reading() const noexcept { return store_.conventions().reading(); }

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
                              .event_types = names_of<typename detail::HandledBy<P>::Type>()};
    made.make_projector = [projector = std::move(projector), reading = reading()] {
      return std::make_unique<detail::TypedProjector<P>>(projector, reading);
    };
    return made;
  }

  void add_async(detail::Registration registration, const ProjectorOptions& options);
  void attach_inline(detail::Registration registration, const InlineOptions& options);
  void attach_reaction(detail::Registration registration, const ReactionOptions& options);
  void check_new(const detail::Registration& registration) const;
  bool only_notes() const noexcept { return progress_ == nullptr; }

  Store& store_;
  std::vector<detail::Registration> registered_;
  std::vector<std::unique_ptr<InlineProjector>> inline_;
  /// Null if registrations are only recorded.
  std::unique_ptr<projections::Progress> progress_;
};

}  // namespace stela
