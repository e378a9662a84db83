// Courses and their students: rules that no single stream can enforce.
#pragma once

#include <stela/framework.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>

namespace courses {

/// Names a course. Decisions record its events, so it needs no state.
struct Course {
  static constexpr std::string_view category = "course";
};
using CourseId = stela::Id<Course>;

// --- students: an aggregate

struct StudentRegistered {
  static constexpr stela::EventType event_type{"student.registered", 1, stela::should_publish};
  std::string name;
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(name));
  }
};

struct StudentState {
  bool registered = false;
  std::string name;
  void apply(const StudentRegistered& event) {
    registered = true;
    name = event.name;
  }
};

class Student : public stela::AggregateRoot<StudentState, stela::EventSet<StudentRegistered>> {
 public:
  static constexpr std::string_view category = "student";
  using AggregateRoot::AggregateRoot;

  void enrol(std::string name) {
    if (state().registered) throw std::invalid_argument{"the student is registered already"};
    record(StudentRegistered{std::move(name)});
  }
};
using StudentId = stela::Id<Student>;

// --- events of courses

struct CourseDefined {
  static constexpr stela::EventType event_type{"course.defined", 1, stela::should_publish};
  CourseId course;
  std::int64_t capacity = 0;
  static constexpr auto tags = stela::tags(&CourseDefined::course);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(course), CEREAL_NVP(capacity));
  }
};

struct CapacityChanged {
  static constexpr stela::EventType event_type{"course.capacity_changed", 1, stela::local};
  CourseId course;
  std::int64_t capacity = 0;
  static constexpr auto tags = stela::tags(&CapacityChanged::course);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(course), CEREAL_NVP(capacity));
  }
};

struct Subscribed {
  static constexpr stela::EventType event_type{"course.subscribed", 1, stela::should_publish};
  CourseId course;
  StudentId student;
  static constexpr auto tags = stela::tags(&Subscribed::course, &Subscribed::student);
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(course), CEREAL_NVP(student));
  }
};

// --- views: the facts that decisions need

/// Whether a course exists, and how many seats it has left.
struct Seats {
  using Events = stela::EventSet<CourseDefined, CapacityChanged, Subscribed>;
  CourseId course;
  static constexpr auto tags = stela::tags(&Seats::course);
  bool exists = false;
  std::int64_t capacity = 0;
  std::int64_t taken = 0;

  void apply(const CourseDefined& event) {
    exists = true;
    capacity = event.capacity;
  }
  void apply(const CapacityChanged& event) { capacity = event.capacity; }
  void apply(const Subscribed&) { ++taken; }
};

/// How many courses a student takes.
struct Load {
  using Events = stela::EventSet<Subscribed>;
  StudentId student;
  static constexpr auto tags = stela::tags(&Load::student);
  std::int64_t courses = 0;
  void apply(const Subscribed&) { ++courses; }
};

/// Whether this student takes this course.
struct Place {
  using Events = stela::EventSet<Subscribed>;
  CourseId course;
  StudentId student;
  static constexpr auto tags = stela::tags(&Place::course, &Place::student);
  bool taken = false;
  void apply(const Subscribed&) { taken = true; }
};

// --- decisions

inline constexpr std::int64_t most_courses = 5;

/// A rule forbids the request.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct DefineCourse {
  CourseId course;
  std::int64_t capacity = 0;

  auto views() const { return std::tuple{Seats{course}}; }
  void operator()(stela::Decision& decision, const Seats& seats) const {
    if (seats.exists) throw Refused{"Course with id \"" + course.key() + "\" already exists"};
    decision.record(CourseDefined{course, capacity});
  }
};

struct ChangeCapacity {
  CourseId course;
  std::int64_t capacity = 0;

  auto views() const { return std::tuple{Seats{course}}; }
  void operator()(stela::Decision& decision, const Seats& seats) const {
    if (!seats.exists) throw Refused{"Course \"" + course.key() + "\" does not exist"};
    if (seats.capacity == capacity) {
      throw Refused{"New capacity " + std::to_string(capacity) +
                    " is the same as the current capacity"};
    }
    decision.record(CapacityChanged{course, capacity});
  }
};

struct Subscribe {
  CourseId course;
  StudentId student;

  auto views() const { return std::tuple{Seats{course}, Load{student}, Place{course, student}}; }
  void operator()(stela::Decision& decision, const Seats& seats, const Load& load,
                  const Place& place) const {
    if (!seats.exists) throw Refused{"Course \"" + course.key() + "\" does not exist"};
    if (seats.taken >= seats.capacity) {
      throw Refused{"Course \"" + course.key() + "\" is already fully booked"};
    }
    if (place.taken) throw Refused{"Student already subscribed to this course"};
    if (load.courses >= most_courses) {
      throw Refused{"Student already subscribed to 5 courses"};
    }
    decision.record(Subscribed{course, student});
  }
};

}  // namespace courses
