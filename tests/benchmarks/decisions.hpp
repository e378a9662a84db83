// The decisions that are measured, on any engine.
#pragma once

#include "measure.hpp"
#include "report.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stela::bench {

struct Course {
  static constexpr std::string_view category = "course";
};
struct Student {
  static constexpr std::string_view category = "student";
};

struct CourseDefined {
  static constexpr EventType event_type{"course.defined", 1, local};
  Id<Course> course;
  std::int64_t capacity = 0;
  static constexpr auto tags = stela::tags(&CourseDefined::course);

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(course), CEREAL_NVP(capacity));
  }
};

struct Subscribed {
  static constexpr EventType event_type{"course.subscribed", 1, local};
  Id<Course> course;
  Id<Student> student;
  static constexpr auto tags = stela::tags(&Subscribed::course, &Subscribed::student);

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(course), CEREAL_NVP(student));
  }
};

struct Seats {
  using Events = EventSet<CourseDefined, Subscribed>;
  Id<Course> course;
  static constexpr auto tags = stela::tags(&Seats::course);
  std::int64_t left = 0;

  void apply(const CourseDefined& event) { left += event.capacity; }
  void apply(const Subscribed&) { --left; }
};

struct StudentLoad {
  using Events = EventSet<Subscribed>;
  Id<Student> student;
  static constexpr auto tags = stela::tags(&StudentLoad::student);
  std::int64_t courses = 0;

  void apply(const Subscribed&) { ++courses; }
};

/// Who subscribes to what: some 20 events a course, some 5 a student.
struct School {
  explicit School(std::int64_t size);

  std::int64_t events;
  std::vector<Id<Course>> courses;
  std::vector<Id<Student>> students;
};
/// Courses with seats enough, then subscriptions, spread over all of them as life does.
void fill_school(EventStore& store, const School& school);

/// One operation: a random student subscribes to a random course.
class Subscribing final : public Subject {
 public:
  Subscribing(EventStore& store, const School& school, std::uint64_t seed = 5)
      : store_{store}, school_{school}, dice_{seed} {}

  void prepare() override {
    course_ = dice_.below(school_.courses.size());
    student_ = dice_.below(school_.students.size());
  }
  void run() override;

  /// What the views said, summed up: the bare loop must have read the same.
  std::int64_t seen = 0;
  /// That of the last event.
  GlobalSequence sequence = {};

 private:
  EventStore& store_;
  const School& school_;
  Dice dice_;
  std::size_t course_ = 0;
  std::size_t student_ = 0;
};

struct Customer {
  static constexpr std::string_view category = "customer";
};
struct Ledger {
  static constexpr std::string_view category = "ledger";
};

struct Issued {
  static constexpr EventType event_type{"invoice.issued", 1, local};
  Id<Customer> customer;
  Id<Ledger> ledger;
  std::int64_t number = 0;
  static constexpr auto tags = stela::tags(&Issued::customer, &Issued::ledger);

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(ledger), CEREAL_NVP(number));
  }
};

/// Numbers without gaps.
struct LastNumber {
  using Events = EventSet<Issued>;
  Id<Ledger> ledger;
  static constexpr auto tags = stela::tags(&LastNumber::ledger);
  static constexpr bool last_only = true;
  std::int64_t number = 0;

  void apply(const Issued& event) { number = event.number; }
};

/// Which invoices one thread issues: from its own customer, in one of these ledgers.
struct Desk {
  Id<Customer> customer;
  std::vector<Id<Ledger>> ledgers;
};
/// Hot: all desks share one ledger. Cold: each has many of its own.
std::vector<Desk> make_desks(std::size_t count, bool hot);

/// One operation: the next invoice of a ledger.
class Issuing final : public Subject {
 public:
  Issuing(EventStore& store, Desk desk) : store_{store}, desk_{std::move(desk)} {}

  void run() override;

  std::int64_t decisions = 0;
  /// Decided again, as somebody else was faster.
  std::int64_t conflicts = 0;

 private:
  EventStore& store_;
  const Desk desk_;
  std::size_t turn_ = 0;
};

struct Conflicts {
  std::int64_t decisions = 0;
  std::int64_t conflicts = 0;
};
/// What the desks, each an Issuing, came to.
Conflicts conflicts_of(const std::vector<std::unique_ptr<Subject>>& desks);
/// Notes how many there were. Throws if there were any among decisions on different tags.
void report_conflicts(Report& report, const std::string& name, bool hot, const Conflicts& all);

/// Throws unless the ledgers have as many invoices as were issued, their numbers without a gap.
void check_numbers(EventStore& store, const std::vector<Desk>& desks, std::int64_t issued);

/// Operations a second, all threads together; each runs its subject once at least.
double rate_of(const std::vector<std::unique_ptr<Subject>>& subjects,
               std::chrono::milliseconds length);

}  // namespace stela::bench
