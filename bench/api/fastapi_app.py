"""The list and the detail of incidents, and a document, as one would write them with FastAPI and SQLAlchemy.

The caller is trusted: no signature or revocation is checked, which svc does for each request.
"""

import os
from datetime import datetime
from typing import Any, List, Optional

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel
from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    String,
    Table,
    create_engine,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import declarative_base, joinedload, relationship, selectinload, sessionmaker

engine = create_engine(
    os.environ["DATABASE_URL"], pool_size=int(os.environ["POOL_SIZE"]), max_overflow=0, future=True
)
SessionLocal = sessionmaker(engine, future=True)
Base = declarative_base()


class IncidentType(Base):
    __tablename__ = "incident_type"
    id = Column(BigInteger, primary_key=True)
    name = Column(String)


class IncidentPriority(Base):
    __tablename__ = "incident_priority"
    id = Column(BigInteger, primary_key=True)
    name = Column(String)


class Individual(Base):
    __tablename__ = "individual"
    id = Column(BigInteger, primary_key=True)
    name = Column(String)
    email = Column(String)


class Participant(Base):
    __tablename__ = "participant"
    id = Column(BigInteger, primary_key=True)
    incident_id = Column(ForeignKey("incident.id"))
    individual_id = Column(ForeignKey("individual.id"))
    left_at = Column(DateTime(timezone=True))
    individual = relationship(Individual)


class ParticipantRole(Base):
    __tablename__ = "participant_role"
    id = Column(BigInteger, primary_key=True)
    participant_id = Column(ForeignKey("participant.id"))
    incident_id = Column(ForeignKey("incident.id"))
    role = Column(String)
    renounced_at = Column(DateTime(timezone=True))
    participant = relationship(Participant)


class FlowStep(Base):
    __tablename__ = "flow_step"
    incident_id = Column(ForeignKey("incident.id"), primary_key=True)
    step = Column(String, primary_key=True)
    state = Column(String)
    attempts = Column(Integer)
    error = Column(String)
    due_at = Column(DateTime(timezone=True))
    finished_at = Column(DateTime(timezone=True))


class Conversation(Base):
    __tablename__ = "conversation"
    id = Column(BigInteger, primary_key=True)
    incident_id = Column(ForeignKey("incident.id"))
    plugin_slug = Column(String)
    external_id = Column(String)
    weblink = Column(String)
    archived_at = Column(DateTime(timezone=True))


class ParticipantGroup(Base):
    __tablename__ = "participant_group"
    id = Column(BigInteger, primary_key=True)
    incident_id = Column(ForeignKey("incident.id"))
    plugin_slug = Column(String)
    name = Column(String)
    email = Column(String)
    weblink = Column(String)


class Term(Base):
    __tablename__ = "term"
    id = Column(BigInteger, primary_key=True)


def linked(other):
    return Table(
        f"document_{other}",
        Base.metadata,
        Column("document_id", ForeignKey("document.id"), primary_key=True),
        Column(f"{other}_id", ForeignKey(f"{other}.id"), primary_key=True),
    )


class Document(Base):
    __tablename__ = "document"
    id = Column(BigInteger, primary_key=True)
    incident_id = Column(ForeignKey("incident.id"))
    name = Column(String)
    description = Column(String)
    resource_type = Column(String)
    plugin_slug = Column(String)
    resource_id = Column(String)
    weblink = Column(String)
    version = Column(Integer)
    created_at = Column(DateTime(timezone=True))
    updated_at = Column(DateTime(timezone=True))
    incident = relationship("Incident")
    incident_types = relationship(IncidentType, secondary=linked("incident_type"))
    incident_priorities = relationship(IncidentPriority, secondary=linked("incident_priority"))
    terms = relationship(Term, secondary=linked("term"))

    @property
    def incident_type_ids(self):
        return [one.id for one in self.incident_types]

    @property
    def incident_priority_ids(self):
        return [one.id for one in self.incident_priorities]

    @property
    def term_ids(self):
        return [one.id for one in self.terms]


class Recommendation(Base):
    __tablename__ = "recommendation"
    id = Column(BigInteger, primary_key=True)
    incident_id = Column(ForeignKey("incident.id"))
    document_id = Column(ForeignKey("document.id"))
    individual_id = Column(ForeignKey("individual.id"))
    plugin_slug = Column(String)
    reasons = Column(JSONB)
    document = relationship(Document)
    individual = relationship(Individual)

    @property
    def name(self):
        return (self.document or self.individual).name

    @property
    def weblink(self):
        return self.document.weblink

    @property
    def email(self):
        return self.individual.email


class Incident(Base):
    __tablename__ = "incident"
    id = Column(BigInteger, primary_key=True)
    name = Column(String)
    title = Column(String)
    description = Column(String)
    status = Column(String)
    visibility = Column(String)
    incident_type_id = Column(ForeignKey("incident_type.id"))
    incident_priority_id = Column(ForeignKey("incident_priority.id"))
    resolution = Column(String)
    reported_at = Column(DateTime(timezone=True))
    stable_at = Column(DateTime(timezone=True))
    closed_at = Column(DateTime(timezone=True))
    cost = Column(BigInteger)
    version = Column(Integer)
    created_at = Column(DateTime(timezone=True))
    updated_at = Column(DateTime(timezone=True))
    incident_type = relationship(IncidentType)
    incident_priority = relationship(IncidentPriority)
    roles = relationship(ParticipantRole, order_by=ParticipantRole.id)
    steps = relationship(FlowStep, order_by=FlowStep.step)
    conversations = relationship(Conversation, order_by=Conversation.id)
    participant_groups = relationship(ParticipantGroup, order_by=ParticipantGroup.id)
    recommendations = relationship(Recommendation, order_by=Recommendation.id)

    def holder(self, role):
        return next((one.participant.individual for one in self.roles if one.role == role), None)

    @property
    def reporter(self):
        return self.holder("reporter")

    @property
    def commander(self):
        return self.holder("commander")

    @property
    def individuals(self):
        return [one for one in self.recommendations if one.individual]


class View(BaseModel):
    class Config:
        orm_mode = True


class Named(View):
    id: int
    name: str


class IncidentView(View):
    id: int
    name: str
    title: str
    description: str
    status: str
    visibility: str
    incident_type_id: int
    incident_type: Named
    incident_priority_id: int
    incident_priority: Named
    resolution: Optional[str]
    reported_at: datetime
    stable_at: Optional[datetime]
    closed_at: Optional[datetime]
    cost: int
    version: int
    created_at: datetime
    updated_at: datetime


class Page(BaseModel):
    items: List[IncidentView]
    next_cursor: Optional[str]


class Person(View):
    id: int
    name: str
    email: str


class StepView(View):
    step: str
    state: str
    attempts: int
    error: Optional[str]
    due_at: Optional[datetime]
    finished_at: Optional[datetime]


class ConversationView(View):
    plugin_slug: str
    external_id: Optional[str]
    weblink: Optional[str]
    archived_at: Optional[datetime]


class GroupView(View):
    plugin_slug: str
    name: str
    email: Optional[str]
    weblink: Optional[str]


class ProposedDocument(View):
    document_id: int
    name: str
    weblink: Optional[str]
    plugin_slug: str
    reasons: List[Any]


class ProposedPerson(View):
    individual_id: int
    name: str
    email: str
    plugin_slug: str
    reasons: List[Any]


class IncidentDetail(IncidentView):
    reporter: Optional[Person]
    commander: Optional[Person]
    steps: List[StepView]
    conversations: List[ConversationView]
    participant_groups: List[GroupView]
    documents: List[ProposedDocument]
    individuals: List[ProposedPerson]


class DocumentView(View):
    id: int
    name: str
    description: str
    resource_type: str
    plugin_slug: Optional[str]
    resource_id: Optional[str]
    weblink: Optional[str]
    incident_id: Optional[int]
    incident_type_ids: List[int]
    incident_priority_ids: List[int]
    term_ids: List[int]
    version: int
    created_at: datetime
    updated_at: datetime


app = FastAPI()


def readable(user: str):
    theirs = (
        select(Participant.incident_id)
        .join(Individual, Individual.id == Participant.individual_id)
        .where(Individual.email == user, Participant.left_at.is_(None))
    )
    return or_(Incident.visibility == "Open", Incident.id.in_(theirs))


# A session from `Depends` would be closed by another thread of the pool: under load, all of these wait for a
# connection, and none is left to return one.
@app.get("/incidents/", response_model=Page)
def list_incidents(limit: int = 50, x_user: str = Header()):
    with SessionLocal() as session:
        found = session.scalars(
            select(Incident)
            .options(joinedload(Incident.incident_type), joinedload(Incident.incident_priority))
            .where(readable(x_user))
            .order_by(Incident.reported_at.desc(), Incident.id.desc())
            .limit(limit + 1)
        ).all()
    items = found[:limit]
    more = len(found) > limit
    return {"items": items, "next_cursor": f"{items[-1].reported_at.isoformat()}_{items[-1].id}" if more else None}


@app.get("/incidents/{incident_id}", response_model=IncidentDetail)
def get_incident(incident_id: int, x_user: str = Header()):
    with SessionLocal() as session:
        found = session.scalars(
            select(Incident)
            .options(
                joinedload(Incident.incident_type),
                joinedload(Incident.incident_priority),
                selectinload(Incident.roles)
                .joinedload(ParticipantRole.participant)
                .joinedload(Participant.individual),
                selectinload(Incident.steps),
                selectinload(Incident.conversations),
                selectinload(Incident.participant_groups),
                selectinload(Incident.recommendations).joinedload(Recommendation.individual),
                selectinload(Incident.recommendations).joinedload(Recommendation.document),
            )
            .where(Incident.id == incident_id, readable(x_user))
        ).first()
        if found is None:
            raise HTTPException(404, "There is no such incident")
        proposed = [one for one in found.recommendations if one.document]
        of_others = {one.document.incident_id for one in proposed if one.document.incident_id is not None}
        visible = set(session.scalars(select(Incident.id).where(Incident.id.in_(of_others), readable(x_user))))
    found.documents = [
        one for one in proposed if one.document.incident_id is None or one.document.incident_id in visible
    ]
    return found


@app.get("/documents/{document_id}", response_model=DocumentView)
def get_document(document_id: int, x_user: str = Header()):
    with SessionLocal() as session:
        found = session.scalars(
            select(Document)
            .outerjoin(Incident)
            .options(
                selectinload(Document.incident_types),
                selectinload(Document.incident_priorities),
                selectinload(Document.terms),
            )
            .where(Document.id == document_id, or_(Document.incident_id.is_(None), readable(x_user)))
        ).first()
        if found is None:
            raise HTTPException(404, "There is no such document")
        return DocumentView.from_orm(found)


@app.get("/healthcheck")
def healthcheck():
    with SessionLocal() as session:
        current = session.scalars(text("select id from revision order by id desc limit 1")).one()
    return {"status": "ok", "database": "ok", "revision": {"status": "ok", "current": [current]}}
