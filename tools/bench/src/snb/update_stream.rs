//! The update streams: events after the data set's cut, in order.
//!
//! A line has the time at which it is due, the time of what it depends upon, its kind and the
//! parameters of that, with `|` between them; lists have `;`, organizations with years `,`.

use super::operation::{Insertion, Operation};

/// An insertion at its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// When it is due, in milliseconds since 1970.
    pub due: i64,
    /// All that was due until then has to be done before.
    pub depends_on: i64,
    /// What it inserts.
    pub operation: Operation,
}

/// Reads a line.
///
/// # Errors
/// When it is none.
pub fn read_line(line: &str) -> Result<Update, String> {
    let mut fields = Fields {
        rest: line.split('|'),
        count: 0,
    };
    let due = fields.time()?;
    let depends_on = fields.time()?;
    let kind = fields.number()?;
    let insertion = insertion(kind, &mut fields)?;
    if fields.rest.next().is_some() {
        return Err(format!("more than {} values", fields.count));
    }
    Ok(Update {
        due,
        depends_on,
        operation: Operation::Insert(Box::new(insertion)),
    })
}

struct Fields<'a> {
    rest: std::str::Split<'a, char>,
    count: usize,
}

impl<'a> Fields<'a> {
    fn text(&mut self) -> Result<&'a str, String> {
        self.count += 1;
        self.rest
            .next()
            .ok_or_else(|| format!("it ends before value {}", self.count))
    }

    fn string(&mut self) -> Result<String, String> {
        self.text().map(str::to_owned)
    }

    fn parse<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, String> {
        let text = self.text()?;
        let count = self.count;
        text.parse()
            .map_err(|_| format!("value {count} is no {what}: {text}"))
    }

    fn number(&mut self) -> Result<u64, String> {
        self.parse("number")
    }

    fn time(&mut self) -> Result<i64, String> {
        self.parse("time")
    }

    /// The number of a message, or -1.
    fn message(&mut self) -> Result<Option<u64>, String> {
        let number: i64 = self.parse("number")?;
        Ok(u64::try_from(number).ok())
    }

    fn items<T>(&mut self, of: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
        let text = self.text()?;
        let items = text.split(';').filter(|item| !item.is_empty());
        items
            .map(|item| of(item).ok_or_else(|| format!("value {}: {item}", self.count)))
            .collect()
    }

    fn numbers(&mut self) -> Result<Vec<u64>, String> {
        self.items(|item| item.parse().ok())
    }

    fn strings(&mut self) -> Result<Vec<String>, String> {
        self.items(|item| Some(item.to_owned()))
    }

    fn years(&mut self) -> Result<Vec<(u64, i64)>, String> {
        self.items(|item| {
            let (organization, year) = item.split_once(',')?;
            Some((organization.parse().ok()?, year.parse().ok()?))
        })
    }
}

fn insertion(kind: u64, fields: &mut Fields<'_>) -> Result<Insertion, String> {
    Ok(match kind {
        1 => Insertion::Person {
            person: fields.number()?,
            first_name: fields.string()?,
            last_name: fields.string()?,
            gender: fields.string()?,
            birthday: fields.time()?,
            creation_date: fields.time()?,
            location_ip: fields.string()?,
            browser_used: fields.string()?,
            city: fields.number()?,
            languages: fields.strings()?,
            emails: fields.strings()?,
            tags: fields.numbers()?,
            study_at: fields.years()?,
            work_at: fields.years()?,
        },
        2 | 3 => Insertion::Like {
            person: fields.number()?,
            message: fields.number()?,
            is_comment: kind == 3,
            creation_date: fields.time()?,
        },
        4 => Insertion::Forum {
            forum: fields.number()?,
            title: fields.string()?,
            creation_date: fields.time()?,
            moderator: fields.number()?,
            tags: fields.numbers()?,
        },
        5 => Insertion::Membership {
            forum: fields.number()?,
            person: fields.number()?,
            join_date: fields.time()?,
        },
        6 => Insertion::Post {
            post: fields.number()?,
            image_file: fields.string()?,
            creation_date: fields.time()?,
            location_ip: fields.string()?,
            browser_used: fields.string()?,
            language: fields.string()?,
            content: fields.string()?,
            length: fields.number()?,
            author: fields.number()?,
            forum: fields.number()?,
            country: fields.number()?,
            tags: fields.numbers()?,
        },
        7 => comment(fields)?,
        8 => Insertion::Friendship {
            person1: fields.number()?,
            person2: fields.number()?,
            creation_date: fields.time()?,
        },
        kind => return Err(format!("there is no insertion {kind}")),
    })
}

fn comment(fields: &mut Fields<'_>) -> Result<Insertion, String> {
    let comment = fields.number()?;
    let creation_date = fields.time()?;
    let location_ip = fields.string()?;
    let browser_used = fields.string()?;
    let content = fields.string()?;
    let length = fields.number()?;
    let author = fields.number()?;
    let country = fields.number()?;
    let reply_to = match (fields.message()?, fields.message()?) {
        (Some(post), None) => (post, false),
        (None, Some(comment)) => (comment, true),
        _ => return Err("a comment replies to a post or to a comment".to_owned()),
    };
    Ok(Insertion::Comment {
        comment,
        creation_date,
        location_ip,
        browser_used,
        content,
        length,
        author,
        country,
        reply_to,
        tags: fields.numbers()?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::operation::Kind;
    use super::*;

    const LINES: [&str; 8] = [
        "9|0|1|35|Ashin|Michie|female|487555200000|9|203.215.60.162|Chrome|1010|my;en|a@gmail.com;b@gmx.com|0;9||1009,2010;982,2004",
        "9|8|2|26|27|9",
        "9|8|3|17|10|9",
        "9|8|4|50|Wall of A|9|17|",
        "9|8|5|50|17|9",
        "9|8|6|11||9|41.220.244.87|Chrome|tk|About|5|17|50|83|334;396",
        "9|8|7|12|9|62.217.119.183|Firefox|About Phil|10|14|78|11|-1|334",
        "9|8|8|14|15|9",
    ];

    #[test]
    fn each_kind_is_read() {
        for (number, line) in (1..).zip(LINES) {
            let update = read_line(line).unwrap();
            assert_eq!(update.operation.kind(), Kind::Insert(number));
            assert_eq!(update.due, 9);
        }
        let Operation::Insert(person) = read_line(LINES[0]).unwrap().operation else {
            panic!("an insertion");
        };
        let Insertion::Person {
            study_at, work_at, ..
        } = *person
        else {
            panic!("a person");
        };
        assert!(study_at.is_empty());
        assert_eq!(work_at, [(1009, 2010), (982, 2004)]);
    }

    #[test]
    fn what_is_cut_off_or_goes_on_is_refused() {
        for line in LINES {
            let cut = line.rsplit_once('|').unwrap().0;
            assert!(read_line(cut).is_err(), "{cut}");
            assert!(read_line(&format!("{line}|")).is_err(), "{line}");
        }
        assert!(read_line("9|8|9|1").unwrap_err().contains("no insertion 9"));
        assert!(read_line("").is_err());
    }
}
