// Views: the part of history that a decision needs.
#pragma once

#include <stela/framework/aggregate_root.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/query.hpp>
#include <stela/framework/tags.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela::detail {

template <class V, class E>
inline constexpr bool applies_recorded = requires(V view, const Recorded<E>& event) {
  view.apply(event);
};

template <class V, class E>
consteval bool check_view_apply() {
  static_assert(
      applies_recorded<V, E> || requires(V view, const E& event) { view.apply(event); },
      "stela: the view can't apply one of its events; give it `void apply(const E&)`, or "
      "`void apply(const stela::Recorded<E>&)`, for the event that the lines around "
      "this one name");
  return true;
}

/// True if every `E` has tags of `Value`'s category: declared ones, or the stream of the aggregate
/// that records it.
template <class E, class Value>
constexpr bool carries_tag() noexcept {
  if constexpr (!Value::is_tag) return true;  // check_tag reports it.
  if constexpr (requires { typename Value::Named::EventsType; }) {
    if (Value::Named::EventsType::template contains<E>) return true;
  }
  return declares_tag<E>(Value::category());
}

template <class V, class E>
consteval bool check_view_tags() {
  []<class... Members>(const TagList<Members...>&) {
    static_assert((... && carries_tag<E, TagValueOf<V, Members>>()),
                  "stela: one of the view's events doesn't carry the view's tags; declare them in "
                  "the event that the lines around this one name: `static constexpr auto tags = "
                  "stela::tags(…);`");
  }(V::tags);
  return true;
}

template <class V>
consteval bool is_last_only() noexcept {
  if constexpr (requires { V::last_only; }) return V::last_only;
  return false;
}

/// Checks every rule for a view, each with our own error message.
template <class V>
consteval bool check_view() {
  static_assert(
      requires { typename V::Events; },
      "stela: a view names the events that it needs: `using Events = stela::EventSet<…>;`");
  static_assert(Tagged<V>,
                "stela: a view needs tags, by which its events are found: `static constexpr auto "
                "tags = stela::tags(&View::course);`");
  if constexpr (Tagged<V> && requires { typename V::Events; }) {
    static_assert(check_tags<V>());
    []<class... Members>(const TagList<Members...>&) {
      static_assert((... && TagValueOf<V, Members>::is_one),
                    "stela: a tag of a view is one id; for several, decide with a std::vector of "
                    "views");
    }(V::tags);
    static_assert(
        !requires(V view, const ForeignEvent& event) { view.apply(event); },
        "stela: the view has a catch-all `apply`, which would swallow events without a "
        "handler; write one `apply` for each event");
    V::Events::for_each([]<class E>(std::type_identity<E>) {
      static_assert(check_view_apply<V, E>());
      static_assert(check_view_tags<V, E>());
    });
  }
  return true;
}

/// True if the view takes one of its events as a Recorded.
template <class V>
consteval bool sees_records() noexcept {
  bool sees = false;
  V::Events::for_each(
      [&]<class E>(std::type_identity<E>) { sees = sees || applies_recorded<V, E>; });
  return sees;
}

/// The tags that a store's history must have for a view.
template <class V>
const std::vector<TagNeed>& needs_of_view() {
  static const std::vector<TagNeed> needs = [] {
    std::vector<TagNeed> all;
    V::Events::for_each([&]<class E>(std::type_identity<E>) {
      for_each_name<E>([&](std::string_view name) {
        constexpr auto& wanted = declared_tags<V>;
        constexpr auto& declared = declared_tags<E>;
        for (const TagDeclaration& tag : std::span{wanted.all}.first(wanted.size)) {
          all.push_back({name, tag.category, std::span{declared.all}.first(declared.size)});
        }
      });
    });
    return all;
  }();
  return needs;
}

template <class V>
QueryItem query_item_of(const V& view) {
  QueryItem item;
  V::Events::for_each([&]<class E>(std::type_identity<E>) {
    for_each_name<E>([&](std::string_view name) {
      if (std::find(item.types.begin(), item.types.end(), name) == item.types.end()) {
        item.types.emplace_back(name);
      }
    });
  });
  for_each_tag(view, [&](Tag tag) { item.tags.push_back(std::move(tag)); });
  return item;
}

/// Passes events to a view. Threads: one at a time.
class STELA_FRAMEWORK_EXPORT ViewReader {
 public:
  struct Traits {
    bool last_only;
    bool with_tags;
  };

  ViewReader(QueryItem item, std::span<const TagNeed> needs, Traits traits) noexcept
      : item_{std::move(item)}, needs_{needs}, traits_{traits} {}
  virtual ~ViewReader() = default;
  ViewReader(const ViewReader&) = delete;
  ViewReader& operator=(const ViewReader&) = delete;

  const QueryItem& item() const noexcept { return item_; }
  std::span<const TagNeed> needs() const noexcept { return needs_; }
  bool last_only() const noexcept { return traits_.last_only; }
  /// True if it looks at the tags of its events, or may.
  bool with_tags() const noexcept { return traits_.with_tags; }
  bool wants(const StoredEvent& event) const noexcept { return matches(item_, event); }
  /// Applies an event that it wants. UnknownEvent if the view's events don't have its version.
  virtual void take(const StoredEvent& event) = 0;

 private:
  const QueryItem item_;
  const std::span<const TagNeed> needs_;
  const Traits traits_;
};

template <class V>
class TypedViewReader final : public ViewReader {
 public:
  TypedViewReader(V view, const Reading& reading)
      : ViewReader{query_item_of(view), needs_of_view<V>(),
                   Traits{.last_only = is_last_only<V>(), .with_tags = sees_records<V>()}},
        view_{std::move(view)},
        decoder_{reading} {
    static_assert(check_view<V>());
  }

  void take(const StoredEvent& event) override {
    decoder_.decode(event, [&]<class E>(E&& decoded) {
      using Plain = std::remove_cvref_t<E>;
      if constexpr (applies_recorded<V, Plain>) {
        view_.apply(Recorded<Plain>{decoded, event});
      } else {
        view_.apply(std::as_const(decoded));
      }
    });
  }
  const V& view() const noexcept { return view_; }
  V&& release() noexcept { return std::move(view_); }

 private:
  V view_;
  EventDecoder<typename V::Events> decoder_;
};

}  // namespace stela::detail
