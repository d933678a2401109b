-- What needs attention, and what is to be done about it?
select
    severity,
    subject,
    what,
    affected,
    checked,
    cure
from health
where severity <> 'ok'
order by severity, subject, what;
