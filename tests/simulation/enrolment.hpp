// A domain of two overlapping rules, whose events say what their decision saw.
#pragma once

#include <stela/framework.hpp>

#include <cstdint>
#include <string_view>

namespace stela::sim {

struct Course {
  static constexpr std::string_view category = "course";
};
struct Student {
  static constexpr std::string_view category = "student";
};

/// What a decision knows when it decides.
struct Seen {
  std::int64_t seats = 0;
  std::int64_t taken = 0;
  std::int64_t courses = 0;
  bool operator==(const Seen&) const = default;
};

inline constexpr std::int64_t most_courses = 3;

/// The rules: a course has seats, and a student takes few courses.
inline bool may_enrol(const Seen& seen) noexcept {
  return seen.taken < seen.seats && seen.courses < most_courses;
}

/// Every event names the job that it came of.
struct Enrolled {
  static constexpr EventType event_type{"course.enrolled", 1, local};
  Id<Course> course;
  Id<Student> student;
  std::int64_t job = 0;
  Seen seen = {};
  static constexpr auto tags = stela::tags(&Enrolled::course, &Enrolled::student);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(course), CEREAL_NVP(student), CEREAL_NVP(job),
            cereal::make_nvp("seats", seen.seats), cereal::make_nvp("taken", seen.taken),
            cereal::make_nvp("courses", seen.courses));
  }
};

// These are appended without a decision.
struct Resized {
  static constexpr EventType event_type{"course.resized", 1, local};
  Id<Course> course;
  std::int64_t seats = 0;
  std::int64_t job = 0;
  static constexpr auto tags = stela::tags(&Resized::course);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(course), CEREAL_NVP(seats), CEREAL_NVP(job));
  }
};
struct Dropped {
  static constexpr EventType event_type{"student.dropped", 1, local};
  Id<Student> student;
  Id<Course> course;
  std::int64_t job = 0;
  static constexpr auto tags = stela::tags(&Dropped::student, &Dropped::course);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(student), CEREAL_NVP(course), CEREAL_NVP(job));
  }
};
/// No view wants it.
struct Noted {
  static constexpr EventType event_type{"course.noted", 1, local};
  Id<Course> course;
  Id<Student> student;
  std::int64_t job = 0;
  static constexpr auto tags = stela::tags(&Noted::course, &Noted::student);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(course), CEREAL_NVP(student), CEREAL_NVP(job));
  }
};

struct Seats {
  using Events = EventSet<Resized, Enrolled, Dropped>;
  Id<Course> course;
  static constexpr auto tags = stela::tags(&Seats::course);
  std::int64_t seats = 0;
  std::int64_t taken = 0;
  void apply(const Resized& e) { seats = e.seats; }
  void apply(const Enrolled&) { ++taken; }
  void apply(const Dropped&) { --taken; }
};
struct Load {
  using Events = EventSet<Enrolled, Dropped>;
  Id<Student> student;
  static constexpr auto tags = stela::tags(&Load::student);
  std::int64_t courses = 0;
  void apply(const Enrolled&) { ++courses; }
  void apply(const Dropped&) { --courses; }
};

}  // namespace stela::sim
